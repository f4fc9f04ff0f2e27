//! Small graphs for the tests of passes.
