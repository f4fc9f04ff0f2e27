mod accuracy;
mod wide;
