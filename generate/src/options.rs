//! Options by key and value. Those of a session and of a provider are passed on.

use crate::error::{Result, fail};
use crate::folder::Folder;

/// How a generator is made and how it chooses; what is `None` is as the folder says.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// "" for the session's own choice.
    pub(crate) provider: String,
    pub(crate) provider_options: Vec<(String, String)>,
    pub(crate) session_options: Vec<(String, String)>,
    pub(crate) max_length: Option<usize>,
    pub(crate) chunk: usize,
    pub(crate) sequences: usize,
    pub(crate) share_buffer: Option<bool>,
    pub(crate) search: SearchOptions,
}

/// How the next token is chosen. These may change while a generator lives.
#[derive(Clone, Debug, Default)]
pub(crate) struct SearchOptions {
    pub(crate) sample: Option<bool>,
    pub(crate) temperature: Option<f64>,
    pub(crate) top_k: Option<usize>,
    pub(crate) top_p: Option<f64>,
    pub(crate) min_p: Option<f64>,
    pub(crate) repetition_penalty: Option<f64>,
    pub(crate) seed: Option<u64>,
    pub(crate) ignore_stop: bool,
}

/// The keys in the order in which they are listed.
pub(crate) const KEYS: &[&str] = &[
    "provider",
    "max_length",
    "chunk",
    "sequences",
    "share_buffer",
    "sample",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "seed",
    "ignore_stop",
];

impl Default for Options {
    fn default() -> Options {
        Options {
            provider: String::new(),
            provider_options: Vec::new(),
            session_options: Vec::new(),
            max_length: None,
            chunk: 512,
            sequences: 1,
            share_buffer: None,
            search: SearchOptions::default(),
        }
    }
}

impl Options {
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        if let Some(key) = key.strip_prefix("provider.") {
            put(&mut self.provider_options, key, value);
            return Ok(());
        }
        if let Some(key) = key.strip_prefix("session.") {
            put(&mut self.session_options, key, value);
            return Ok(());
        }
        match key {
            "provider" => self.provider = value.to_owned(),
            "max_length" => self.max_length = Some(whole(key, value, 1, i32::MAX as u64)? as usize),
            "chunk" => self.chunk = whole(key, value, 1, 1 << 20)? as usize,
            "sequences" => self.sequences = whole(key, value, 1, 4096)? as usize,
            "share_buffer" if value == "auto" => self.share_buffer = None,
            "share_buffer" => self.share_buffer = Some(flag(key, value)?),
            _ => return self.search.set(key, value),
        }
        Ok(())
    }

    /// The value of a key as a text; "" for what is as the folder says.
    pub(crate) fn get(&self, key: &str) -> Result<String> {
        let passed = |options: &[(String, String)], key: &str| {
            options.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()).unwrap_or_default()
        };
        if let Some(key) = key.strip_prefix("provider.") {
            return Ok(passed(&self.provider_options, key));
        }
        if let Some(key) = key.strip_prefix("session.") {
            return Ok(passed(&self.session_options, key));
        }
        let search = &self.search;
        Ok(match key {
            "provider" => self.provider.clone(),
            "max_length" => text(self.max_length),
            "chunk" => self.chunk.to_string(),
            "sequences" => self.sequences.to_string(),
            "share_buffer" => self.share_buffer.map_or("auto".into(), |on| i32::from(on).to_string()),
            "sample" => text(search.sample.map(i32::from)),
            "temperature" => text(search.temperature),
            "top_k" => text(search.top_k),
            "top_p" => text(search.top_p),
            "min_p" => text(search.min_p),
            "repetition_penalty" => text(search.repetition_penalty),
            "seed" => text(search.seed),
            "ignore_stop" => i32::from(search.ignore_stop).to_string(),
            _ => return unknown(key),
        })
    }
}

impl SearchOptions {
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "sample" => self.sample = Some(flag(key, value)?),
            "temperature" => self.temperature = Some(number(key, value, 0.0, 1e3)?),
            "top_k" => self.top_k = Some(whole(key, value, 0, i32::MAX as u64)? as usize),
            "top_p" => self.top_p = Some(number(key, value, 0.0, 1.0)?),
            "min_p" => self.min_p = Some(number(key, value, 0.0, 1.0)?),
            "repetition_penalty" => self.repetition_penalty = Some(number(key, value, 1e-3, 1e3)?),
            "seed" => self.seed = Some(whole(key, value, 0, u64::MAX)?),
            "ignore_stop" => self.ignore_stop = flag(key, value)?,
            _ if KEYS.contains(&key) => fail!(
                InvalidArgument,
                "option \"{key}\" is read when a generator is made; this one exists already"
            ),
            _ => return unknown(key).map(drop),
        }
        Ok(())
    }

    /// What is not set is as the folder says.
    pub(crate) fn with_defaults(&self, folder: &Folder) -> SearchOptions {
        let search = &folder.search;
        SearchOptions {
            sample: self.sample.or(Some(search.do_sample)),
            temperature: self.temperature.or(Some(search.temperature)),
            top_k: self.top_k.or(Some(search.top_k)),
            top_p: self.top_p.or(Some(search.top_p)),
            min_p: self.min_p.or(Some(0.0)),
            repetition_penalty: self.repetition_penalty.or(Some(search.repetition_penalty)),
            seed: self.seed.or(Some(0)),
            ignore_stop: self.ignore_stop,
        }
    }
}

fn put(options: &mut Vec<(String, String)>, key: &str, value: &str) {
    options.retain(|(name, _)| name != key);
    options.push((key.to_owned(), value.to_owned()));
}

fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn flag(key: &str, value: &str) -> Result<bool> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => fail!(InvalidArgument, "option \"{key}\": \"{value}\" is not allowed; allowed are 0 and 1"),
    }
}

fn whole(key: &str, value: &str, least: u64, most: u64) -> Result<u64> {
    match value.parse::<u64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => fail!(
            InvalidArgument,
            "option \"{key}\": \"{value}\" is not allowed; allowed are whole numbers from {least} to {most}"
        ),
    }
}

fn number(key: &str, value: &str, least: f64, most: f64) -> Result<f64> {
    match value.parse::<f64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => fail!(
            InvalidArgument,
            "option \"{key}\": \"{value}\" is not allowed; allowed are numbers from {least} to {most}"
        ),
    }
}

fn unknown(key: &str) -> Result<String> {
    fail!(
        InvalidArgument,
        "there is no option \"{key}\"; there are {}, and session.KEY and provider.KEY, which are passed on",
        KEYS.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_or_refused() {
        let mut options = Options::default();
        for (key, value, refused) in [
            ("temperature", "0.7", None),
            ("temperature", "-1", Some("allowed are numbers from 0 to 1000")),
            ("top_k", "40", None),
            ("top_k", "x", Some("\"x\" is not allowed")),
            ("top_p", "nan", Some("numbers from 0 to 1")),
            ("seed", "18446744073709551615", None),
            ("sample", "yes", Some("allowed are 0 and 1")),
            ("share_buffer", "0", None),
            ("chunk", "0", Some("from 1 to 1048576")),
            ("provider.device_id", "1", None),
            ("session.threads", "2", None),
            ("topk", "1", Some("there is no option \"topk\"")),
        ] {
            match (options.set(key, value), refused) {
                (Ok(()), None) => assert_eq!(options.get(key).unwrap(), value, "{key}"),
                (Err(e), Some(part)) => assert!(e.message.contains(part), "{key}: {e}"),
                (result, _) => panic!("{key} {value}: {result:?}"),
            }
        }
        let late = options.search.set("chunk", "5").unwrap_err();
        assert!(late.message.contains("is read when a generator is made"), "{late}");
        for key in KEYS {
            options.get(key).unwrap();
        }
    }
}
