mod microsoft;
mod standard;
