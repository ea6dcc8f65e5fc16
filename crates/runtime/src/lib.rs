pub mod plan_file;
