mod long;
mod microsoft;
mod packed;
mod paged;
mod quantized_cache;
mod recurrent;
mod standard;
mod window_cache;
