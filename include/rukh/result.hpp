// What rukh.hpp builds on: errors, results, and owners of handles.
//
// Works with and without exceptions (-fno-exceptions). A function that may fail returns a Result;
// value() of a failed one throws rukh::Exception, or without exceptions prints the message and aborts.

#ifndef RUKH_RESULT_HPP
#define RUKH_RESULT_HPP

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <rukh/rukh.h>

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define RUKH_HAS_EXCEPTIONS 1
#include <stdexcept>
#else
#define RUKH_HAS_EXCEPTIONS 0
#endif

namespace rukh {

/// Why a call failed. The message names the thing, the value given and what is allowed.
struct Error {
  rukh_status status;
  std::string message;

  /// The name of the status: "RUKH_ERROR_NOT_FOUND".
  const char *name() const noexcept { return rukh_status_name(status); }
};

#if RUKH_HAS_EXCEPTIONS
class Exception : public std::runtime_error {
 public:
  explicit Exception(const Error &error) : std::runtime_error(error.message), status_(error.status) {}
  rukh_status status() const noexcept { return status_; }

 private:
  rukh_status status_;
};
#endif

/// The error that a function of the C API gave, which this takes over.
inline Error from_c(rukh_error *error) {
  Error taken{rukh_error_code(error), rukh_error_message(error)};
  rukh_error_destroy(error);
  return taken;
}
/// An error for a function of one's own that reports as the C API does; its owner destroys it.
inline rukh_error *to_c(const Error &error) { return rukh_error_create(error.status, error.message.c_str()); }

/// Ends what cannot go on: by an exception, or by aborting where there are none.
[[noreturn]] inline void fail(const Error &error) {
#if RUKH_HAS_EXCEPTIONS
  throw Exception(error);
#else
  std::fprintf(stderr, "rukh: %s: %s\n", error.name(), error.message.c_str());
  std::abort();
#endif
}

/// A value, or the error for which there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// The value; see the top of this file for a failed result.
  T &value() & {
    check();
    return *std::get_if<0>(&state_);
  }
  const T &value() const & {
    check();
    return *std::get_if<0>(&state_);
  }
  T value() && {
    check();
    return std::move(*std::get_if<0>(&state_));
  }

  /// The error of a failed result; one that says so when it did not fail.
  Error error() const {
    const Error *error = std::get_if<1>(&state_);
    return error != nullptr ? *error : Error{RUKH_OK, std::string()};
  }

 private:
  void check() const {
    if (const Error *error = std::get_if<1>(&state_)) fail(*error);
  }

  std::variant<T, Error> state_;
};

/// Success, or an error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() : error_{RUKH_OK, std::string()} {}
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const noexcept { return error_.status == RUKH_OK; }
  explicit operator bool() const noexcept { return ok(); }
  void value() const {
    if (!ok()) fail(error_);
  }
  Error error() const { return error_; }

 private:
  Error error_;
};

namespace detail {

/// Owns a handle: can be moved, not copied; destroys it once.
template <class T, void (*Destroy)(T *)>
class Handle {
 public:
  Handle() noexcept = default;
  /// Takes over a handle of the C API.
  explicit Handle(T *handle) noexcept : handle_(handle) {}
  Handle(Handle &&other) noexcept : handle_(other.release()) {}
  Handle &operator=(Handle &&other) noexcept {
    if (this != &other) {
      Destroy(handle_);
      handle_ = other.release();
    }
    return *this;
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { Destroy(handle_); }

  /// For calls of the C API; stays owned.
  T *get() const noexcept { return handle_; }
  /// Gives up the handle; the caller destroys it.
  T *release() noexcept { return std::exchange(handle_, nullptr); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  T *handle_ = nullptr;
};

inline Error take(rukh_status status, rukh_error *error) {
  Error taken{status, rukh_error_message(error)};
  rukh_error_destroy(error);
  return taken;
}

/// Calls `f(&error)` of the C API.
template <class F>
Result<void> call(F f) {
  rukh_error *error = nullptr;
  rukh_status status = f(&error);
  if (status != RUKH_OK) return take(status, error);
  return {};
}

/// Calls `f(&out, &error)`, where `out` starts as `T()`.
template <class T, class F>
Result<T> get(F f) {
  T out{};
  rukh_error *error = nullptr;
  rukh_status status = f(&out, &error);
  if (status != RUKH_OK) return take(status, error);
  return out;
}

/// Calls `f(&handle, &error)`, which makes a handle for the owner `Owner`.
template <class Owner, class T, class F>
Result<Owner> make(F f) {
  T *handle = nullptr;
  rukh_error *error = nullptr;
  rukh_status status = f(&handle, &error);
  if (status != RUKH_OK) return take(status, error);
  return Owner(handle);
}

/// Calls `f(buf, cap, &needed, &error)` until the text fits: another thread may make it longer.
template <class F>
Result<std::string> text(F f) {
  std::string buffer;
  for (;;) {
    size_t needed = 0;
    rukh_error *error = nullptr;
    rukh_status status = f(buffer.empty() ? nullptr : &buffer[0], buffer.size(), &needed, &error);
    if (status == RUKH_OK && needed <= buffer.size()) {
      buffer.resize(needed - 1);
      return buffer;
    }
    if (status != RUKH_OK && needed <= buffer.size()) return take(status, error);
    rukh_error_destroy(error);
    buffer.resize(needed);
  }
}

/// Calls `f(given..., &error)`.
template <class F, class... Given>
Result<void> call_with(F f, Given... given) {
  return call([&](rukh_error **error) { return f(given..., error); });
}

/// Calls `f(given..., &out, &error)`.
template <class T, class F, class... Given>
Result<T> get_from(F f, Given... given) {
  return get<T>([&](T *out, rukh_error **error) { return f(given..., out, error); });
}

/// The same for a text that stays the library's, which is copied; NULL becomes "".
template <class F, class... Given>
Result<std::string> borrowed_from(F f, Given... given) {
  Result<const char *> text = get_from<const char *>(f, given...);
  if (!text) return text.error();
  return std::string(text.value() != nullptr ? text.value() : "");
}

/// Calls `f(given..., buf, cap, &needed, &error)`.
template <class F, class... Given>
Result<std::string> text_from(F f, Given... given) {
  return text([&](char *buf, size_t cap, size_t *needed, rukh_error **error) {
    return f(given..., buf, cap, needed, error);
  });
}

/// Calls that with each index from 0 until there is none.
template <class F, class... Given>
Result<std::vector<std::string>> texts_from(F f, Given... given) {
  std::vector<std::string> texts;
  for (size_t index = 0;; index++) {
    Result<std::string> text = text_from(f, given..., index);
    if (!text && text.error().status == RUKH_ERROR_INVALID_ARGUMENT) return texts;
    if (!text) return text.error();
    texts.push_back(text.value());
  }
}

/// Calls `f(given, index, &text, &second, &error)` as often as `count(given, &n, &error)` says.
template <class Second, class Raw, class Count, class F, class Given>
Result<std::vector<std::pair<std::string, Second>>> pairs_from(Count count, F f, Given given) {
  std::vector<std::pair<std::string, Second>> pairs;
  Result<size_t> length = get_from<size_t>(count, given);
  if (!length) return length.error();
  for (size_t index = 0; index < length.value(); index++) {
    const char *first = "";
    Raw second{};
    Result<void> result = call_with(f, given, index, &first, &second);
    if (!result) return result.error();
    pairs.emplace_back(first, second);
  }
  return pairs;
}

}  // namespace detail
}  // namespace rukh

#endif  // RUKH_RESULT_HPP
