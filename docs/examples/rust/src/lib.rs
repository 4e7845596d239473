//! The broker would be here.
