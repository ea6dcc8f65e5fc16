//! Everything that users see, compared as a whole. `VERDONE_BLESS=1` rewrites the expected files.

#![expect(clippy::unwrap_used, reason = "a test helper that cannot go on has found a defect")]

mod expected;
mod fixture;
mod json;
mod landing;
mod markdown;
mod pages;
mod plain;
mod review;
mod screen;
mod terminal;
