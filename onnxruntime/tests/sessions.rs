use rukh as _;
#[test] fn link() { assert!(!onnxruntime::OrtGetApiBase().is_null()); }
