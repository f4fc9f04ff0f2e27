//! Functions of the API that are not here: each gives a status that names it.

use ort_sys::OrtStatusPtr;

use crate::failure::Failure;

/// The name of a function.
pub trait Name {
    const NAME: &'static str;
}

/// What a function that is not here gives: a status, or nothing.
pub trait Refusal {
    fn refuse(name: &str) -> Self;
}

impl Refusal for OrtStatusPtr {
    fn refuse(name: &str) -> OrtStatusPtr {
        Failure::absent(format!("{name} is not in rukh's libonnxruntime")).into_status()
    }
}

impl<T> Refusal for *const T {
    fn refuse(_: &str) -> *const T {
        std::ptr::null()
    }
}

impl<T> Refusal for *mut T {
    fn refuse(_: &str) -> *mut T {
        std::ptr::null_mut()
    }
}

macro_rules! nothing {
    ($($ty:ty)*) => {$(
        impl Refusal for $ty {
            fn refuse(_: &str) -> $ty {
                <$ty>::default()
            }
        }
    )*};
}
nothing!(() usize i64);

/// A function pointer of any signature, for a name.
pub trait Refused {
    fn named<N: Name>() -> Self;
}

macro_rules! refused {
    ($($argument:ident)*) => {
        impl<R: Refusal, $($argument),*> Refused for unsafe extern "system" fn($($argument),*) -> R {
            fn named<N: Name>() -> Self {
                unsafe extern "system" fn function<N: Name, R: Refusal, $($argument),*>($(_: $argument),*) -> R {
                    R::refuse(N::NAME)
                }
                function::<N, R, $($argument),*>
            }
        }
    };
}
refused!();
refused!(A);
refused!(A B);
refused!(A B C);
refused!(A B C D);
refused!(A B C D E);
refused!(A B C D E F);
refused!(A B C D E F G);
refused!(A B C D E F G H);
refused!(A B C D E F G H I);
refused!(A B C D E F G H I J);
refused!(A B C D E F G H I J K);
refused!(A B C D E F G H I J K L);
