//! The instructions of the elementwise interpreter; `kernels/include/rukh/map_ops.h` says what each does.

macro_rules! ops {
    ($($name:ident = $number:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[repr(u32)]
        pub(in super::super) enum MapOp {
            $($name = $number),*
        }

        #[cfg(test)]
        const ALL: &[(&str, u32)] = &[$((stringify!($name), $number)),*];
    };
}

ops! {
    Load = 0, Save0 = 1, Add = 3, Sub = 4, ReverseSub = 5, Mul = 6, Div = 7, ReverseDiv = 8, Pow = 9, Min = 10, Max = 11, FloorMod = 12,
    TruncMod = 13, Equal = 14, Less = 15, LessOrEqual = 16, Greater = 17, GreaterOrEqual = 18, And = 19,
    Or = 20, Xor = 21, Select = 22, PRelu = 23, BitAnd = 24, BitOr = 25, BitXor = 26, ShiftLeft = 27,
    ShiftRight = 28, BitNot = 29, Not = 30, Abs = 31, Neg = 32, Sign = 33, Relu = 34, Shrink = 35, Ceil = 36,
    Floor = 37, Round = 38, Sqrt = 39, Reciprocal = 40, Exp = 41, Log = 42, Sin = 43, Cos = 44, Tan = 45,
    Asin = 46, Acos = 47, Atan = 48, Sinh = 49, Cosh = 50, Tanh = 51, Asinh = 52, Acosh = 53, Atanh = 54,
    Erf = 55, Sigmoid = 56, Softplus = 57, Softsign = 58, Elu = 59, Celu = 60, Selu = 61, LeakyRelu = 62,
    ThresholdedRelu = 63, HardSigmoid = 64, HardSwish = 65, Mish = 66, GeluErf = 67, GeluTanh = 68,
    Swish = 69, IsNan = 70, IsInf = 71,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_same_numbers() {
        let header = include_str!("../../../../kernels/include/rukh/map_ops.h");
        for (name, number) in ALL {
            assert!(header.contains(&format!("OP({name}, {number})")), "{name} = {number}");
        }
    }
}
