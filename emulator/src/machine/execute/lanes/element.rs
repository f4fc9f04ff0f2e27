//! The kinds of elements that memory instructions load and store.

/// How an element of memory becomes values of registers.
pub trait Load: Send + Sync + 'static {
    const BYTES: usize;
    const REGISTERS: usize = 1;
    /// Whether registers are whole words of the element.
    const WORDS: bool = false;

    /// The new value of the element's `register`; `old` is what it holds.
    ///
    /// # Safety
    ///
    /// `BYTES` bytes can be read at `from`.
    unsafe fn read(from: *const u8, register: usize, old: u32) -> u32;
}

/// How values of registers become an element of memory.
pub trait Store: Send + Sync + 'static {
    const BYTES: usize;
    const REGISTERS: usize = 1;

    /// Writes the part of the element that is in its `register`.
    ///
    /// # Safety
    ///
    /// `BYTES` bytes can be written at `to`.
    unsafe fn write(to: *mut u8, register: usize, value: u32);
}

/// One register for each four bytes.
pub struct Words<const COUNT: usize>;

impl<const COUNT: usize> Load for Words<COUNT> {
    const BYTES: usize = 4 * COUNT;
    const REGISTERS: usize = COUNT;
    const WORDS: bool = true;

    #[inline(always)]
    unsafe fn read(from: *const u8, register: usize, _: u32) -> u32 {
        // SAFETY: the registers' words lie within the element.
        unsafe { from.add(4 * register).cast::<u32>().read_unaligned() }
    }
}

impl<const COUNT: usize> Store for Words<COUNT> {
    const BYTES: usize = 4 * COUNT;
    const REGISTERS: usize = COUNT;

    #[inline(always)]
    unsafe fn write(to: *mut u8, register: usize, value: u32) {
        // SAFETY: the registers' words lie within the element.
        unsafe { to.add(4 * register).cast::<u32>().write_unaligned(value) }
    }
}

/// Small integers, extended to 32 bits by zeros or by their sign.
pub struct U8;
pub struct I8;
pub struct U16;
pub struct I16;

impl Load for U8 {
    const BYTES: usize = 1;

    #[inline(always)]
    unsafe fn read(from: *const u8, _: usize, _: u32) -> u32 {
        // SAFETY: the caller's promise.
        u32::from(unsafe { from.read() })
    }
}

impl Load for I8 {
    const BYTES: usize = 1;

    #[inline(always)]
    unsafe fn read(from: *const u8, _: usize, _: u32) -> u32 {
        // SAFETY: the caller's promise.
        i32::from(unsafe { from.cast::<i8>().read() }) as u32
    }
}

impl Load for U16 {
    const BYTES: usize = 2;

    #[inline(always)]
    unsafe fn read(from: *const u8, _: usize, _: u32) -> u32 {
        // SAFETY: the caller's promise.
        u32::from(unsafe { from.cast::<u16>().read_unaligned() })
    }
}

impl Load for I16 {
    const BYTES: usize = 2;

    #[inline(always)]
    unsafe fn read(from: *const u8, _: usize, _: u32) -> u32 {
        // SAFETY: the caller's promise.
        i32::from(unsafe { from.cast::<i16>().read_unaligned() }) as u32
    }
}

/// An element that goes to the lower half of a register, whose upper half stays.
pub struct Low<K>(std::marker::PhantomData<K>);

/// An element that goes to the upper half of a register, whose lower half stays.
pub struct High<K>(std::marker::PhantomData<K>);

impl<K: Load> Load for Low<K> {
    const BYTES: usize = K::BYTES;

    #[inline(always)]
    unsafe fn read(from: *const u8, register: usize, old: u32) -> u32 {
        // SAFETY: the caller's promise.
        old & 0xffff_0000 | unsafe { K::read(from, register, 0) } & 0xffff
    }
}

impl<K: Load> Load for High<K> {
    const BYTES: usize = K::BYTES;

    #[inline(always)]
    unsafe fn read(from: *const u8, register: usize, old: u32) -> u32 {
        // SAFETY: the caller's promise.
        old & 0xffff | unsafe { K::read(from, register, 0) } << 16
    }
}

/// The byte that begins at a bit of the register.
pub struct ByteAt<const BIT: u32>;

impl<const BIT: u32> Store for ByteAt<BIT> {
    const BYTES: usize = 1;

    #[inline(always)]
    unsafe fn write(to: *mut u8, _: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { to.write((value >> BIT) as u8) }
    }
}

/// The two bytes that begin at a bit of the register.
pub struct HalfAt<const BIT: u32>;

impl<const BIT: u32> Store for HalfAt<BIT> {
    const BYTES: usize = 2;

    #[inline(always)]
    unsafe fn write(to: *mut u8, _: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<u16>().write_unaligned((value >> BIT) as u16) }
    }
}

/// What is built for one kind of element.
pub trait LoadBuilder {
    type Output;
    fn build<K: Load>(self) -> Self::Output;
}

pub trait StoreBuilder {
    type Output;
    fn build<K: Store>(self) -> Self::Output;
}

/// Builds for the element that a name ends with; the parts of DS names are in another order.
pub fn with_load<B: LoadBuilder>(element: &str, builder: B) -> Option<B::Output> {
    Some(match element {
        "u8" => builder.build::<U8>(),
        "i8" => builder.build::<I8>(),
        "u16" => builder.build::<U16>(),
        "i16" => builder.build::<I16>(),
        "b32" => builder.build::<Words<1>>(),
        "b64" => builder.build::<Words<2>>(),
        "b96" => builder.build::<Words<3>>(),
        "b128" => builder.build::<Words<4>>(),
        "d16_u8" | "u8_d16" => builder.build::<Low<U8>>(),
        "d16_i8" | "i8_d16" => builder.build::<Low<I8>>(),
        "d16_b16" | "u16_d16" => builder.build::<Low<U16>>(),
        "d16_hi_u8" | "u8_d16_hi" => builder.build::<High<U8>>(),
        "d16_hi_i8" | "i8_d16_hi" => builder.build::<High<I8>>(),
        "d16_hi_b16" | "u16_d16_hi" => builder.build::<High<U16>>(),
        _ => return None,
    })
}

pub fn with_store<B: StoreBuilder>(element: &str, builder: B) -> Option<B::Output> {
    Some(match element {
        "b8" => builder.build::<ByteAt<0>>(),
        "b16" => builder.build::<HalfAt<0>>(),
        "b32" => builder.build::<Words<1>>(),
        "b64" => builder.build::<Words<2>>(),
        "b96" => builder.build::<Words<3>>(),
        "b128" => builder.build::<Words<4>>(),
        "d16_hi_b8" | "b8_d16_hi" => builder.build::<ByteAt<16>>(),
        "d16_hi_b16" | "b16_d16_hi" => builder.build::<HalfAt<16>>(),
        _ => return None,
    })
}
