mod microsoft;
mod packed;
mod paged;
mod recurrent;
mod standard;
