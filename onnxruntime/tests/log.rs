//! Who hears of what: severities of environments, sessions and runs, and the names that messages bear.

mod support;

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::Mutex;

use ort_sys::OrtLoggingLevel::*;
use ort_sys::*;
use support::*;

struct Heard {
    level: i32,
    id: String,
    place: String,
    message: String,
}

static HEARD: Mutex<Vec<Heard>> = Mutex::new(Vec::new());

unsafe extern "system" fn hear(
    _user: *mut c_void,
    level: OrtLoggingLevel,
    _category: *const c_char,
    id: *const c_char,
    place: *const c_char,
    message: *const c_char,
) {
    // SAFETY: texts that end with a NUL.
    let [id, place, message] =
        [id, place, message].map(|text| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned());
    HEARD.lock().unwrap().push(Heard { level: level as i32, id, place, message });
}

fn taken() -> Vec<Heard> {
    std::mem::take(&mut *HEARD.lock().unwrap())
}

#[test]
fn sessions_and_runs_have_severities_and_names() {
    // SAFETY: live objects, texts, places for the results; each object is released once.
    unsafe {
        let create = api().CreateEnvWithCustomLogger;
        let env =
            Env(get(|out| create(hear, null_mut(), ORT_LOGGING_LEVEL_ERROR, c"test".as_ptr(), out)).unwrap());
        drop(env.open(&digits(), None).unwrap());
        assert!(taken().is_empty());

        let options = Options::new();
        check((api().SetSessionLogId)(options.0, c"mine".as_ptr())).unwrap();
        assert!(check((api().SetSessionLogSeverityLevel)(options.0, 5)).is_err());
        check((api().SetSessionLogSeverityLevel)(options.0, 1)).unwrap();
        let session = env.open(&digits(), Some(&options)).unwrap();
        let opened = taken();
        assert!(opened.iter().any(|it| it.message.starts_with("opened model")));
        assert!(opened.iter().all(|it| it.level >= 1 && it.id == "mine" && it.place.contains(".rs:")));

        let image = Value::floats(&[1, 1, 8, 8], &[0.5; 64]);
        let run = |options| {
            let mut place = [null_mut()];
            session.run_into(&[("image", &image)], &["scores"], &mut place, options).unwrap();
            drop(Value(place[0]));
        };
        run(null_mut());
        assert!(taken().is_empty());
        let of_run = get(|out| (api().CreateRunOptions)(out)).unwrap();
        check((api().RunOptionsSetRunTag)(of_run, c"first".as_ptr())).unwrap();
        check((api().RunOptionsSetRunLogSeverityLevel)(of_run, 0)).unwrap();
        assert_eq!(get(|out| (api().RunOptionsGetRunLogSeverityLevel)(of_run, out)), Ok(0));
        run(of_run);
        let told = taken();
        assert!(told.len() > 1 && told.iter().all(|it| it.level == 0 && it.id == "mine:first"));
        assert!(check((api().RunOptionsSetRunLogSeverityLevel)(of_run, 9)).is_err());
        check((api().RunOptionsSetRunLogSeverityLevel)(of_run, -1)).unwrap();
        run(of_run);
        assert!(taken().is_empty());
        (api().ReleaseRunOptions)(of_run);
        drop(session);

        check((api().UpdateEnvWithCustomLogLevel)(env.0, ORT_LOGGING_LEVEL_INFO)).unwrap();
        drop(env.open(&digits(), None).unwrap());
        let told = taken();
        assert!(told.iter().any(|it| it.id == "test" && it.message.starts_with("opened model")));
    }
}
