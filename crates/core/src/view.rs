//! Folds of the journal for the surfaces.
