//! The functions of librukh that this library calls, as rukh.h declares them. tests/declarations.rs compares them
//! with the library's source.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_void};

pub type rukh_status = i32;
pub type rukh_element_type = i32;
pub type rukh_kind = i32;

/// Declares types of which only pointers exist here.
macro_rules! opaque {
    ($($name:ident)*) => {$(
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )*};
}

opaque! {
    rukh_environment rukh_environment_options rukh_error rukh_io_binding rukh_run_options rukh_session
    rukh_session_options rukh_value
}

unsafe extern "C" {
    pub fn rukh_error_create(code: rukh_status, message: *const c_char) -> *mut rukh_error;
    pub fn rukh_error_message(error: *const rukh_error) -> *const c_char;
    pub fn rukh_error_destroy(error: *mut rukh_error);
    pub fn rukh_environment_create(
        options: *const rukh_environment_options,
        out: *mut *mut rukh_environment,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_environment_destroy(environment: *mut rukh_environment);
    pub fn rukh_session_options_create(
        out: *mut *mut rukh_session_options,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_options_destroy(options: *mut rukh_session_options);
    pub fn rukh_session_options_set(
        options: *mut rukh_session_options,
        key: *const c_char,
        value: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_options_add_provider(
        options: *mut rukh_session_options,
        provider: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        count: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_create(
        environment: *const rukh_environment,
        path: *const c_char,
        options: *const rukh_session_options,
        out: *mut *mut rukh_session,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_destroy(session: *mut rukh_session);
    pub fn rukh_session_input_count(
        session: *const rukh_session,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_input_name(
        session: *const rukh_session,
        index: usize,
        name: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_input_type(
        session: *const rukh_session,
        index: usize,
        kind: *mut rukh_kind,
        element: *mut rukh_element_type,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_input_shape(
        session: *const rukh_session,
        index: usize,
        dims: *mut i64,
        cap: usize,
        rank: *mut i64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_output_count(
        session: *const rukh_session,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_output_name(
        session: *const rukh_session,
        index: usize,
        name: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_output_type(
        session: *const rukh_session,
        index: usize,
        kind: *mut rukh_kind,
        element: *mut rukh_element_type,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_output_shape(
        session: *const rukh_session,
        index: usize,
        dims: *mut i64,
        cap: usize,
        rank: *mut i64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_placement_count(
        session: *const rukh_session,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_session_placement(
        session: *const rukh_session,
        index: usize,
        node: *mut *const c_char,
        operator_name: *mut *const c_char,
        provider: *mut *const c_char,
        reason: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_value_create_tensor(
        element: rukh_element_type,
        shape: *const i64,
        rank: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_value_create_device_tensor(
        environment: *const rukh_environment,
        device_id: usize,
        element: rukh_element_type,
        shape: *const i64,
        rank: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_value_destroy(value: *mut rukh_value);
    pub fn rukh_value_data(
        value: *const rukh_value,
        data: *mut *const c_void,
        bytes: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_value_data_mut(
        value: *mut rukh_value,
        data: *mut *mut c_void,
        bytes: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_io_binding_create(
        session: *const rukh_session,
        out: *mut *mut rukh_io_binding,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_io_binding_destroy(binding: *mut rukh_io_binding);
    pub fn rukh_io_binding_bind_input(
        binding: *mut rukh_io_binding,
        name: *const c_char,
        value: *const rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_io_binding_bind_output(
        binding: *mut rukh_io_binding,
        name: *const c_char,
        value: *const rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_io_binding_bind_output_allocated(
        binding: *mut rukh_io_binding,
        name: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_io_binding_run(
        binding: *mut rukh_io_binding,
        options: *const rukh_run_options,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    pub fn rukh_io_binding_output(
        binding: *const rukh_io_binding,
        name: *const c_char,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
}
