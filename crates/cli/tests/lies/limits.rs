//! Lies that are believed, each with its name in docs/security.md: who reads that page knows all that is known here.
