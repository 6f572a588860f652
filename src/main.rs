//! `tether`: parse arguments, choose a front end, print the error, exit code.

fn main() {}
