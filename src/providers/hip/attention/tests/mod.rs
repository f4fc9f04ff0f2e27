mod microsoft;
mod packed;
mod standard;
