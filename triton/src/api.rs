//! What is used of Triton's C API: tritonserver.h and tritonbackend.h. The names are theirs. The functions are found when
//! the server opens the backend.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void};

macro_rules! opaque {
    ($($(#[$about:meta])* $name:ident;)*) => {$(
        $(#[$about])*
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )*};
}

opaque! {
    /// Why a call failed; NULL stands for success.
    TRITONSERVER_Error;
    /// A JSON text.
    TRITONSERVER_Message;
    TRITONBACKEND_Backend;
    TRITONBACKEND_Model;
    TRITONBACKEND_ModelInstance;
    TRITONBACKEND_Request;
    TRITONBACKEND_Input;
    TRITONBACKEND_Response;
    TRITONBACKEND_Output;
    TRITONBACKEND_BackendAttribute;
    /// What a sequence keeps from one request to the next.
    TRITONBACKEND_State;
}

/// NULL, or an error that the receiver deletes.
pub type ErrorPointer = *mut TRITONSERVER_Error;

pub type TRITONSERVER_Error_Code = c_int;
pub const TRITONSERVER_ERROR_INTERNAL: TRITONSERVER_Error_Code = 1;
pub const TRITONSERVER_ERROR_NOT_FOUND: TRITONSERVER_Error_Code = 2;
pub const TRITONSERVER_ERROR_INVALID_ARG: TRITONSERVER_Error_Code = 3;
pub const TRITONSERVER_ERROR_UNAVAILABLE: TRITONSERVER_Error_Code = 4;
pub const TRITONSERVER_ERROR_UNSUPPORTED: TRITONSERVER_Error_Code = 5;
pub const TRITONSERVER_ERROR_CANCELLED: TRITONSERVER_Error_Code = 7;

pub type TRITONSERVER_LogLevel = c_int;
pub const TRITONSERVER_LOG_INFO: TRITONSERVER_LogLevel = 0;
pub const TRITONSERVER_LOG_WARN: TRITONSERVER_LogLevel = 1;
pub const TRITONSERVER_LOG_ERROR: TRITONSERVER_LogLevel = 2;
pub const TRITONSERVER_LOG_VERBOSE: TRITONSERVER_LogLevel = 3;

pub type TRITONSERVER_DataType = c_int;

pub type TRITONSERVER_MemoryType = c_int;
pub const TRITONSERVER_MEMORY_CPU: TRITONSERVER_MemoryType = 0;
pub const TRITONSERVER_MEMORY_GPU: TRITONSERVER_MemoryType = 2;

pub type TRITONSERVER_InstanceGroupKind = c_int;
pub const TRITONSERVER_INSTANCEGROUPKIND_CPU: TRITONSERVER_InstanceGroupKind = 1;
pub const TRITONSERVER_INSTANCEGROUPKIND_GPU: TRITONSERVER_InstanceGroupKind = 2;
pub const TRITONSERVER_INSTANCEGROUPKIND_MODEL: TRITONSERVER_InstanceGroupKind = 3;

pub type TRITONBACKEND_ArtifactType = c_int;
pub const TRITONBACKEND_ARTIFACT_FILESYSTEM: TRITONBACKEND_ArtifactType = 0;

pub const TRITONSERVER_RESPONSE_COMPLETE_FINAL: u32 = 1;
pub const TRITONSERVER_REQUEST_RELEASE_ALL: u32 = 1;

unsafe extern "C" {
    pub fn TRITONSERVER_ErrorNew(code: TRITONSERVER_Error_Code, message: *const c_char) -> ErrorPointer;
    pub fn TRITONSERVER_ErrorDelete(error: ErrorPointer);
    pub fn TRITONSERVER_ErrorCode(error: ErrorPointer) -> TRITONSERVER_Error_Code;
    pub fn TRITONSERVER_ErrorMessage(error: ErrorPointer) -> *const c_char;
    pub fn TRITONSERVER_LogIsEnabled(level: TRITONSERVER_LogLevel) -> bool;
    pub fn TRITONSERVER_LogMessage(
        level: TRITONSERVER_LogLevel,
        file: *const c_char,
        line: c_int,
        message: *const c_char,
    ) -> ErrorPointer;
    pub fn TRITONSERVER_MessageNewFromSerializedJson(
        message: *mut *mut TRITONSERVER_Message,
        base: *const c_char,
        byte_size: usize,
    ) -> ErrorPointer;
    pub fn TRITONSERVER_MessageDelete(message: *mut TRITONSERVER_Message) -> ErrorPointer;
    pub fn TRITONSERVER_MessageSerializeToJson(
        message: *mut TRITONSERVER_Message,
        base: *mut *const c_char,
        byte_size: *mut usize,
    ) -> ErrorPointer;

    pub fn TRITONBACKEND_ApiVersion(major: *mut u32, minor: *mut u32) -> ErrorPointer;
    /// The message stays the server's.
    pub fn TRITONBACKEND_BackendConfig(
        backend: *mut TRITONBACKEND_Backend,
        config: *mut *mut TRITONSERVER_Message,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_BackendState(
        backend: *mut TRITONBACKEND_Backend,
        state: *mut *mut c_void,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_BackendSetState(
        backend: *mut TRITONBACKEND_Backend,
        state: *mut c_void,
    ) -> ErrorPointer;
    /// `device_ids`: NULL for the server's choice.
    pub fn TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        attributes: *mut TRITONBACKEND_BackendAttribute,
        kind: TRITONSERVER_InstanceGroupKind,
        count: u64,
        device_ids: *const u64,
        id_count: u64,
    ) -> ErrorPointer;

    pub fn TRITONBACKEND_ModelVersion(model: *mut TRITONBACKEND_Model, version: *mut u64) -> ErrorPointer;
    pub fn TRITONBACKEND_ModelRepository(
        model: *mut TRITONBACKEND_Model,
        kind: *mut TRITONBACKEND_ArtifactType,
        location: *mut *const c_char,
    ) -> ErrorPointer;
    /// The message is the caller's, who deletes it.
    pub fn TRITONBACKEND_ModelConfig(
        model: *mut TRITONBACKEND_Model,
        config_version: u32,
        config: *mut *mut TRITONSERVER_Message,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_ModelAutoCompleteConfig(
        model: *mut TRITONBACKEND_Model,
        wanted: *mut bool,
    ) -> ErrorPointer;
    /// The message stays the caller's.
    pub fn TRITONBACKEND_ModelSetConfig(
        model: *mut TRITONBACKEND_Model,
        config_version: u32,
        config: *mut TRITONSERVER_Message,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_ModelBackend(
        model: *mut TRITONBACKEND_Model,
        backend: *mut *mut TRITONBACKEND_Backend,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_ModelState(model: *mut TRITONBACKEND_Model, state: *mut *mut c_void)
    -> ErrorPointer;
    pub fn TRITONBACKEND_ModelSetState(model: *mut TRITONBACKEND_Model, state: *mut c_void) -> ErrorPointer;

    pub fn TRITONBACKEND_ModelInstanceKind(
        instance: *mut TRITONBACKEND_ModelInstance,
        kind: *mut TRITONSERVER_InstanceGroupKind,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_ModelInstanceDeviceId(
        instance: *mut TRITONBACKEND_ModelInstance,
        device: *mut i32,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_ModelInstanceModel(
        instance: *mut TRITONBACKEND_ModelInstance,
        model: *mut *mut TRITONBACKEND_Model,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_ModelInstanceState(
        instance: *mut TRITONBACKEND_ModelInstance,
        state: *mut *mut c_void,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_ModelInstanceSetState(
        instance: *mut TRITONBACKEND_ModelInstance,
        state: *mut c_void,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_ModelInstanceReportStatistics(
        instance: *mut TRITONBACKEND_ModelInstance,
        request: *mut TRITONBACKEND_Request,
        success: bool,
        exec_start_ns: u64,
        compute_start_ns: u64,
        compute_end_ns: u64,
        exec_end_ns: u64,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_ModelInstanceReportBatchStatistics(
        instance: *mut TRITONBACKEND_ModelInstance,
        batch_size: u64,
        exec_start_ns: u64,
        compute_start_ns: u64,
        compute_end_ns: u64,
        exec_end_ns: u64,
    ) -> ErrorPointer;

    pub fn TRITONBACKEND_RequestInputCount(
        request: *mut TRITONBACKEND_Request,
        count: *mut u32,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_RequestInputByIndex(
        request: *mut TRITONBACKEND_Request,
        index: u32,
        input: *mut *mut TRITONBACKEND_Input,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_RequestOutputCount(
        request: *mut TRITONBACKEND_Request,
        count: *mut u32,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_RequestOutputName(
        request: *mut TRITONBACKEND_Request,
        index: u32,
        name: *mut *const c_char,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_RequestIsCancelled(
        request: *mut TRITONBACKEND_Request,
        cancelled: *mut bool,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_RequestRelease(
        request: *mut TRITONBACKEND_Request,
        release_flags: u32,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_InputProperties(
        input: *mut TRITONBACKEND_Input,
        name: *mut *const c_char,
        datatype: *mut TRITONSERVER_DataType,
        shape: *mut *const i64,
        dims_count: *mut u32,
        byte_size: *mut u64,
        buffer_count: *mut u32,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_InputBuffer(
        input: *mut TRITONBACKEND_Input,
        index: u32,
        buffer: *mut *const c_void,
        byte_size: *mut u64,
        memory_type: *mut TRITONSERVER_MemoryType,
        memory_type_id: *mut i64,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_ResponseNew(
        response: *mut *mut TRITONBACKEND_Response,
        request: *mut TRITONBACKEND_Request,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_ResponseDelete(response: *mut TRITONBACKEND_Response) -> ErrorPointer;
    pub fn TRITONBACKEND_ResponseOutput(
        response: *mut TRITONBACKEND_Response,
        output: *mut *mut TRITONBACKEND_Output,
        name: *const c_char,
        datatype: TRITONSERVER_DataType,
        shape: *const i64,
        dims_count: u32,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_OutputBuffer(
        output: *mut TRITONBACKEND_Output,
        buffer: *mut *mut c_void,
        byte_size: u64,
        memory_type: *mut TRITONSERVER_MemoryType,
        memory_type_id: *mut i64,
    ) -> ErrorPointer;
    /// The state lives until it is updated, or as long as the request.
    pub fn TRITONBACKEND_StateNew(
        state: *mut *mut TRITONBACKEND_State,
        request: *mut TRITONBACKEND_Request,
        name: *const c_char,
        datatype: TRITONSERVER_DataType,
        shape: *const i64,
        dims_count: u32,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_StateBuffer(
        state: *mut TRITONBACKEND_State,
        buffer: *mut *mut c_void,
        byte_size: u64,
        memory_type: *mut TRITONSERVER_MemoryType,
        memory_type_id: *mut i64,
    ) -> ErrorPointer;
    pub fn TRITONBACKEND_StateUpdate(state: *mut TRITONBACKEND_State) -> ErrorPointer;
    /// Takes over the response, also when it fails; the error stays the caller's.
    pub fn TRITONBACKEND_ResponseSend(
        response: *mut TRITONBACKEND_Response,
        send_flags: u32,
        error: ErrorPointer,
    ) -> ErrorPointer;
}
