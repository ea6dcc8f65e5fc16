//! The test kit, the scripts, the benchmark, and rules of the repository.

mod bench;
mod house;
mod kit;
mod model_dialects;
mod model_server;
mod scripts;
