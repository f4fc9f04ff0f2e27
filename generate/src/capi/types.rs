//! The C types of this library. Those of librukh are in rukh.h.

/// Sequences of tokens that grow, with the model that makes them.
pub struct rukh_generator {
    _private: [u8; 0],
}

/// How a generator is made and how it chooses tokens.
pub struct rukh_generator_options {
    _private: [u8; 0],
}

/// Why a sequence does not go on.
pub type rukh_stop = i32;

/// It goes on.
pub const RUKH_STOP_NO: rukh_stop = 0;
/// Its last token is a stop token.
pub const RUKH_STOP_TOKEN: rukh_stop = 1;
/// It has as many tokens as the cache holds.
pub const RUKH_STOP_LENGTH: rukh_stop = 2;
