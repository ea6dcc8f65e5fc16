mod properties;
mod steps;
mod table;
mod world;
