//! Tamper alarms over tables of changes: what must be caught, what must stay quiet, and what holds for every change.

mod properties;
mod table;
