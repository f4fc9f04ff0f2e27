// The instructions of the elementwise interpreter; `providers/hip/map/ops.rs` has the same table, and a
// test compares them.
//
// `acc` is the accumulator, `x` the operand that the instruction names (an input, a saved value or an
// immediate), `a` and `b` its immediates.
#pragma once

#define MAP_OPS(OP)                                                                                 \
  OP(Load, 0)          /* acc = x */                                                                \
  OP(Save0, 1)         /* t0 = acc */                                                               \
  OP(Save1, 2)         /* t1 = acc */                                                               \
  OP(Add, 3)                                                                                        \
  OP(Sub, 4)           /* acc − x */                                                                \
  OP(ReverseSub, 5)    /* x − acc */                                                                \
  OP(Mul, 6)                                                                                        \
  OP(Div, 7)                                                                                        \
  OP(ReverseDiv, 8)                                                                                 \
  OP(Pow, 9)                                                                                        \
  OP(Min, 10)          /* NaN wins, as in Max */                                                    \
  OP(Max, 11)                                                                                       \
  OP(FloorMod, 12)     /* the remainder has the divisor's sign */                                   \
  OP(TruncMod, 13)     /* the remainder has the dividend's sign */                                  \
  OP(Equal, 14)        /* comparisons give 1 or 0 */                                                \
  OP(Less, 15)                                                                                      \
  OP(LessOrEqual, 16)                                                                               \
  OP(Greater, 17)                                                                                   \
  OP(GreaterOrEqual, 18)                                                                            \
  OP(And, 19)                                                                                       \
  OP(Or, 20)                                                                                        \
  OP(Xor, 21)                                                                                       \
  OP(Select, 22)       /* acc ? t0 : x */                                                           \
  OP(PRelu, 23)        /* acc < 0 ? acc·x : acc */                                                  \
  OP(BitAnd, 24)       /* integers */                                                               \
  OP(BitOr, 25)                                                                                     \
  OP(BitXor, 26)                                                                                    \
  OP(ShiftLeft, 27)                                                                                 \
  OP(ShiftRight, 28)                                                                                \
  OP(BitNot, 29)                                                                                    \
  OP(Not, 30)                                                                                       \
  OP(Abs, 31)                                                                                       \
  OP(Neg, 32)                                                                                       \
  OP(Sign, 33)                                                                                      \
  OP(Relu, 34)                                                                                      \
  OP(Shrink, 35)       /* acc < −b ? acc + a : acc > b ? acc − a : 0 */                             \
  OP(Ceil, 36)         /* floating point from here */                                               \
  OP(Floor, 37)                                                                                     \
  OP(Round, 38)                                                                                     \
  OP(Sqrt, 39)                                                                                      \
  OP(Reciprocal, 40)                                                                                \
  OP(Exp, 41)                                                                                       \
  OP(Log, 42)                                                                                       \
  OP(Sin, 43)                                                                                       \
  OP(Cos, 44)                                                                                       \
  OP(Tan, 45)                                                                                       \
  OP(Asin, 46)                                                                                      \
  OP(Acos, 47)                                                                                      \
  OP(Atan, 48)                                                                                      \
  OP(Sinh, 49)                                                                                      \
  OP(Cosh, 50)                                                                                      \
  OP(Tanh, 51)                                                                                      \
  OP(Asinh, 52)                                                                                     \
  OP(Acosh, 53)                                                                                     \
  OP(Atanh, 54)                                                                                     \
  OP(Erf, 55)                                                                                       \
  OP(Sigmoid, 56)                                                                                   \
  OP(Softplus, 57)                                                                                  \
  OP(Softsign, 58)                                                                                  \
  OP(Elu, 59)          /* acc < 0 ? a·(e^acc − 1) : acc */                                          \
  OP(Celu, 60)         /* max(0, acc) + min(0, a·(e^(acc/a) − 1)) */                                \
  OP(Selu, 61)         /* b·(acc > 0 ? acc : a·(e^acc − 1)) */                                      \
  OP(LeakyRelu, 62)    /* acc < 0 ? a·acc : acc */                                                  \
  OP(ThresholdedRelu, 63) /* acc > a ? acc : 0 */                                                   \
  OP(HardSigmoid, 64)  /* max(0, min(1, a·acc + b)) */                                              \
  OP(HardSwish, 65)                                                                                 \
  OP(Mish, 66)                                                                                      \
  OP(GeluErf, 67)                                                                                   \
  OP(GeluTanh, 68)                                                                                  \
  OP(Swish, 69)        /* acc·sigmoid(a·acc) */                                                     \
  OP(IsNan, 70)                                                                                     \
  OP(IsInf, 71)        /* a: the negative infinity counts; b: the positive one */                   \
  OP(TruncDiv, 72)     /* integers: toward zero */

enum MapOp : unsigned {
#define OP(name, number) Map##name = number,
  MAP_OPS(OP)
#undef OP
};
