//! What users see, compared as a whole. `VERDONE_BLESS=1` rewrites the expected files.

mod expected;
mod fixture;
mod json;
mod markdown;
mod pages;
mod plain;
mod screen;
mod terminal;
