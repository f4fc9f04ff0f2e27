//! How a session is opened.

use std::ffi::CString;
use std::path::PathBuf;

use rukh::capi::*;

use super::Adapter;
use super::call::{Result, c_string, call, make};

/// Providers in order of preference, session options by name, and files of adapters whose tensors take the place of
/// initializers.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub providers: Vec<Provider>,
    pub settings: Vec<(String, String)>,
    pub adapters: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
pub struct Provider {
    pub name: String,
    pub options: Vec<(String, String)>,
}

impl From<&str> for Provider {
    fn from(name: &str) -> Provider {
        Provider { name: name.to_owned(), options: Vec::new() }
    }
}

impl Options {
    /// Nodes run on this provider where it can take them.
    pub fn preferred(provider: impl Into<Provider>) -> Options {
        Options { providers: vec![provider.into()], ..Options::default() }
    }

    /// Every node must run on this one provider.
    pub fn only(provider: impl Into<Provider>) -> Options {
        let settings = vec![("fallback".to_owned(), "error".to_owned())];
        Options { settings, ..Options::preferred(provider) }
    }
}

/// What `run` gives where this provider runs every node. Where it cannot, what `run` gives with the help of another one,
/// and the reason.
pub fn alone_or_helped<T>(
    provider: &Provider,
    run: impl Fn(&Options) -> std::result::Result<T, String>,
) -> (std::result::Result<T, String>, Option<String>) {
    match run(&Options::only(provider.clone())) {
        // What the library says of a node that nobody may take.
        Err(reason) if provider.name != "cpu" && reason.contains("option \"fallback\" is \"error\"") => {
            (run(&Options::preferred(provider.clone())), Some(reason))
        }
        result => (result, None),
    }
}

/// The library's options, destroyed with this.
pub(super) struct Handle(pub(super) *mut rukh_session_options);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_session_options_destroy(self.0) };
    }
}

impl Handle {
    pub(super) fn new(options: &Options) -> Result<Handle> {
        // SAFETY: the place written to is a local.
        let handle = Handle(make(|out, error| unsafe { rukh_session_options_create(out, error) })?);
        for provider in &options.providers {
            handle.add(provider)?;
        }
        for (key, value) in &options.settings {
            let (key, value) = (c_string(key), c_string(value));
            // SAFETY: the handle is live and the texts are NUL-terminated.
            call(|error| unsafe { rukh_session_options_set(handle.0, key.as_ptr(), value.as_ptr(), error) })?;
        }
        for path in &options.adapters {
            let adapter = Adapter::open(path)?;
            // SAFETY: both handles are live; the options keep what they need of the adapter.
            call(|error| unsafe { rukh_session_options_add_adapter(handle.0, adapter.0, error) })?;
        }
        Ok(handle)
    }

    fn add(&self, provider: &Provider) -> Result<()> {
        let name = c_string(&provider.name);
        let (keys, values): (Vec<CString>, Vec<CString>) =
            provider.options.iter().map(|(k, v)| (c_string(k), c_string(v))).unzip();
        let keys: Vec<_> = keys.iter().map(|k| k.as_ptr()).collect();
        let values: Vec<_> = values.iter().map(|v| v.as_ptr()).collect();
        // SAFETY: the handle is live, the texts are NUL-terminated, and there are `len` of each.
        call(|error| unsafe {
            rukh_session_options_add_provider(
                self.0,
                name.as_ptr(),
                keys.as_ptr(),
                values.as_ptr(),
                keys.len(),
                error,
            )
        })
    }
}
