//! The user's own functions for device memory, as addresses or with a `user` pointer.

use std::ffi::c_void;

use super::backing::BackingError;
use crate::error::{Result, fail};

/// `void *alloc(size_t bytes)`: device memory aligned to 256, or NULL. As everywhere in C: it must not
/// throw.
type PlainAlloc = unsafe extern "C" fn(usize) -> *mut c_void;
type PlainFree = unsafe extern "C" fn(*mut c_void);
type PlainEmptyCache = unsafe extern "C" fn();

/// The same with what the user gave along, as the last argument.
pub(crate) type UserAlloc = unsafe extern "C" fn(usize, *mut c_void) -> *mut c_void;
pub(crate) type UserFree = unsafe extern "C" fn(*mut c_void, *mut c_void);
pub(crate) type UserEmptyCache = unsafe extern "C" fn(*mut c_void);

/// Functions that give and take device memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExternalFunctions(Functions);

#[derive(Clone, Copy, Debug)]
enum Functions {
    Plain { alloc: PlainAlloc, free: PlainFree, empty_cache: Option<PlainEmptyCache> },
    WithUser { alloc: UserAlloc, free: UserFree, empty_cache: Option<UserEmptyCache>, user: *mut c_void },
}

// SAFETY: `user` is only handed to the functions, which by the contract of `with_user` may be called
// from any thread, and from several at once.
unsafe impl Send for ExternalFunctions {}
// SAFETY: as above.
unsafe impl Sync for ExternalFunctions {}

/// A function's address as provider options give it: decimal, or hexadecimal after `0x`. 0 is none.
pub(crate) fn parse_address(key: &str, value: &str) -> Result<usize> {
    let text = value.trim();
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => usize::from_str_radix(digits, 16),
        None => text.parse(),
    };
    match number {
        Ok(address) => Ok(address),
        Err(_) => fail!(
            InvalidArgument,
            "{key} \"{value}\" is not an address; allowed are a decimal number, 0x and a hexadecimal number, or 0 \
             for none"
        ),
    }
}

impl ExternalFunctions {
    /// From the addresses that the options `gpu_external_alloc`, `gpu_external_free` and
    /// `gpu_external_empty_cache` give; `None` when all are 0. The first two belong together.
    ///
    /// # Safety
    /// What is not 0 must be the address of a function with the signature above, callable from any
    /// thread, and from several at once, as long as the value lives.
    pub(crate) unsafe fn from_addresses(
        alloc: usize,
        free: usize,
        empty_cache: usize,
    ) -> Result<Option<Self>> {
        if (alloc, free, empty_cache) == (0, 0, 0) {
            return Ok(None);
        }
        for (key, address) in [("gpu_external_alloc", alloc), ("gpu_external_free", free)] {
            if address == 0 {
                fail!(
                    InvalidArgument,
                    "{key} is not set; gpu_external_alloc ({alloc:#x}) and gpu_external_free ({free:#x}) must be given \
                     together, or none of gpu_external_*"
                );
            }
        }
        let pointer = |address: usize| std::ptr::with_exposed_provenance::<()>(address);
        // SAFETY: the caller says that these are such functions, and they are not null.
        let (alloc, free) = unsafe {
            (
                std::mem::transmute::<*const (), PlainAlloc>(pointer(alloc)),
                std::mem::transmute::<*const (), PlainFree>(pointer(free)),
            )
        };
        // SAFETY: an `Option` of a function pointer is `None` for null; otherwise as above.
        let empty_cache =
            unsafe { std::mem::transmute::<*const (), Option<PlainEmptyCache>>(pointer(empty_cache)) };
        Ok(Some(ExternalFunctions(Functions::Plain { alloc, free, empty_cache })))
    }

    /// # Safety
    /// The functions must be callable with `user` from any thread, and from several at once, as long
    /// as the value lives.
    pub(crate) unsafe fn with_user(
        alloc: UserAlloc,
        free: UserFree,
        empty_cache: Option<UserEmptyCache>,
        user: *mut c_void,
    ) -> Self {
        ExternalFunctions(Functions::WithUser { alloc, free, empty_cache, user })
    }

    pub(super) fn allocate(&self, bytes: u64) -> std::result::Result<u64, BackingError> {
        let Ok(bytes) = usize::try_from(bytes) else { return Err(BackingError::Exhausted) };
        let pointer = match &self.0 {
            // SAFETY: the maker of the value says that the function may be called.
            Functions::Plain { alloc, .. } => unsafe { alloc(bytes) },
            // SAFETY: as above.
            Functions::WithUser { alloc, user, .. } => unsafe { alloc(bytes, *user) },
        };
        match pointer.expose_provenance() {
            0 => Err(BackingError::Exhausted),
            address => Ok(address as u64),
        }
    }

    /// Gives back what `allocate` returned.
    pub(super) fn free(&self, address: u64) {
        let pointer = std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        match &self.0 {
            // SAFETY: the maker of the value says that the function may be called.
            Functions::Plain { free, .. } => unsafe { free(pointer) },
            // SAFETY: as above.
            Functions::WithUser { free, user, .. } => unsafe { free(pointer, *user) },
        }
    }

    /// Whether there is such a function.
    pub(super) fn empty_cache(&self) -> bool {
        match &self.0 {
            // SAFETY: the maker of the value says that the function may be called.
            Functions::Plain { empty_cache: Some(empty_cache), .. } => unsafe { empty_cache() },
            // SAFETY: as above.
            Functions::WithUser { empty_cache: Some(empty_cache), user, .. } => unsafe { empty_cache(*user) },
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, OnceLock};

    use super::super::allocator::DeviceAllocator;
    use super::super::backing::Backing;
    use super::super::testing::Fake;
    use super::*;

    /// A user's allocator: a fake device, what to add to its addresses, and a count of emptyings.
    struct User {
        fake: Arc<Fake>,
        offset: AtomicU64,
        emptied: AtomicU64,
    }

    fn user_of<'a>(user: *mut c_void) -> &'a User {
        // SAFETY: the tests below pass a `User` that outlives the allocator.
        unsafe { &*user.cast::<User>() }
    }

    unsafe extern "C" fn alloc(bytes: usize, user: *mut c_void) -> *mut c_void {
        let user = user_of(user);
        let address = user.fake.allocate(bytes as u64).map_or(0, |a| a + user.offset.load(Ordering::Relaxed));
        std::ptr::with_exposed_provenance_mut(address as usize)
    }

    unsafe extern "C" fn free(address: *mut c_void, user: *mut c_void) {
        let user = user_of(user);
        user.fake.free(address.addr() as u64 - user.offset.load(Ordering::Relaxed));
    }

    unsafe extern "C" fn empty_cache(user: *mut c_void) {
        user_of(user).emptied.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn functions_with_user() {
        let user = User { fake: Fake::new(8192), offset: AtomicU64::new(0), emptied: AtomicU64::new(0) };
        let pointer = (&raw const user).cast_mut().cast();
        // SAFETY: the functions lock what they use; `user` outlives the allocator.
        let functions = unsafe { ExternalFunctions::with_user(alloc, free, Some(empty_cache), pointer) };
        let allocator = DeviceAllocator::external("hip:0", user.fake.clone(), functions);
        let a = allocator.allocate(4000, 1).unwrap();
        user.fake.submit(1, 1, a.address()..a.address() + 4000);
        let error = allocator.allocate(8000, 1).unwrap_err();
        assert!(error.message.contains("gpu_external_alloc returned no memory"), "{}", error.message);
        assert_eq!(user.emptied.load(Ordering::Relaxed), 1);
        allocator.empty_cache().unwrap();
        assert_eq!(user.emptied.load(Ordering::Relaxed), 2);
        // Waits for the stream; the fake device says if it did not.
        drop(a);
        user.fake.check_returned();
        user.offset.store(64, Ordering::Relaxed);
        let error = allocator.allocate(1, 1).unwrap_err();
        assert!(error.message.contains("must be aligned to 256 bytes"), "{}", error.message);
        user.fake.check_returned();
        assert_eq!(allocator.statistics().num_alloc_retries, 1);
    }

    static FAKE: OnceLock<Arc<Fake>> = OnceLock::new();

    fn shared() -> &'static Arc<Fake> {
        FAKE.get_or_init(|| Fake::new(0))
    }

    extern "C" fn plain_alloc(bytes: usize) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(shared().allocate(bytes as u64).unwrap_or(0) as usize)
    }

    extern "C" fn plain_free(address: *mut c_void) {
        shared().free(address.addr() as u64);
    }

    #[test]
    fn functions_by_address() {
        let alloc =
            parse_address("gpu_external_alloc", &(plain_alloc as *const () as usize).to_string()).unwrap();
        let text = format!("{:#x}", plain_free as *const () as usize);
        let free = parse_address("gpu_external_free", &text).unwrap();
        // SAFETY: both are such functions, and lock what they use.
        let functions = unsafe { ExternalFunctions::from_addresses(alloc, free, 0) }.unwrap().unwrap();
        let allocator = DeviceAllocator::external("hip:0", shared().clone(), functions);
        let block = allocator.allocate(300, 0).unwrap();
        assert_eq!((shared().bytes(), block.capacity(), block.len()), (512, 512, 300));
        allocator.empty_cache().unwrap();
        drop(block);
        shared().check_returned();
    }

    #[test]
    fn addresses_that_do_not_go_together() {
        for (alloc, free, empty_cache, expected) in [
            (1, 0, 0, "gpu_external_free is not set"),
            (0, 1, 0, "gpu_external_alloc is not set"),
            (0, 0, 1, "gpu_external_alloc is not set"),
        ] {
            // SAFETY: nothing is called, as no value is made.
            let Err(error) = (unsafe { ExternalFunctions::from_addresses(alloc, free, empty_cache) }) else {
                panic!("{expected}: no error")
            };
            assert!(error.message.contains(expected), "{}", error.message);
        }
        // SAFETY: there is no function.
        assert!(unsafe { ExternalFunctions::from_addresses(0, 0, 0) }.unwrap().is_none());
        for text in ["", "0x", "abc", "-1", "1.5", "99999999999999999999999"] {
            let error = parse_address("gpu_external_free", text).unwrap_err();
            assert!(error.message.starts_with(&format!("gpu_external_free \"{text}\" is not an address")));
        }
    }
}
