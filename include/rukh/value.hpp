// Tensors, sequences, maps and optionals for rukh.hpp.

#ifndef RUKH_VALUE_HPP
#define RUKH_VALUE_HPP

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <rukh/result.hpp>

namespace rukh {

/// A shape: dimensions in elements, the outermost first.
using Shape = std::vector<std::int64_t>;

/// The element type that a C++ type holds. Half types have none in C++17: use std::uint16_t's bits with
/// the untyped functions.
template <class T>
struct ElementOf;
template <>
struct ElementOf<float> {
  static constexpr rukh_element_type value = RUKH_ELEMENT_FLOAT;
};
template <>
struct ElementOf<double> {
  static constexpr rukh_element_type value = RUKH_ELEMENT_DOUBLE;
};
template <>
struct ElementOf<bool> {
  static constexpr rukh_element_type value = RUKH_ELEMENT_BOOL;
};
template <>
struct ElementOf<std::int8_t> {
  static constexpr rukh_element_type value = RUKH_ELEMENT_INT8;
};
template <>
struct ElementOf<std::int16_t> {
  static constexpr rukh_element_type value = RUKH_ELEMENT_INT16;
};
template <>
struct ElementOf<std::int32_t> {
  static constexpr rukh_element_type value = RUKH_ELEMENT_INT32;
};
template <>
struct ElementOf<std::int64_t> {
  static constexpr rukh_element_type value = RUKH_ELEMENT_INT64;
};
template <>
struct ElementOf<std::uint8_t> {
  static constexpr rukh_element_type value = RUKH_ELEMENT_UINT8;
};
template <>
struct ElementOf<std::uint16_t> {
  static constexpr rukh_element_type value = RUKH_ELEMENT_UINT16;
};
template <>
struct ElementOf<std::uint32_t> {
  static constexpr rukh_element_type value = RUKH_ELEMENT_UINT32;
};
template <>
struct ElementOf<std::uint64_t> {
  static constexpr rukh_element_type value = RUKH_ELEMENT_UINT64;
};
static_assert(sizeof(bool) == 1, "a boolean element is one byte");

/// Elements in memory: what std::span is in C++20.
template <class T>
struct Span {
  T *data;
  std::size_t size;

  T *begin() const noexcept { return data; }
  T *end() const noexcept { return data + size; }
  T &operator[](std::size_t i) const noexcept { return data[i]; }
};

namespace detail {

/// What a deleter gets as `user`: the function to call; nullptr for none.
inline std::function<void()> *releaser(std::function<void()> release) {
  return release ? new std::function<void()>(std::move(release)) : nullptr;
}

inline void released(void *, void *user) noexcept {
  auto *release = static_cast<std::function<void()> *>(user);
  (*release)();
  delete release;
}

inline void released_user(void *user) noexcept { released(nullptr, user); }

}  // namespace detail

/// A tensor, sequence, map or optional. Moves; share() makes another owner of the same elements.
class Value : public detail::Handle<rukh_value, rukh_value_destroy> {
 public:
  using Handle::Handle;

  /// A tensor of zeros (or empty strings).
  static Result<Value> zeros(rukh_element_type element, const Shape &shape) {
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_create_tensor(element, shape.data(), shape.size(), out, error);
    });
  }

  /// A tensor with a copy of `size` elements at `data`.
  template <class T>
  static Result<Value> copy_of(const T *data, std::size_t size, const Shape &shape) {
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_create_tensor_copy(ElementOf<T>::value, shape.data(), shape.size(), data,
                                           size * sizeof(T), out, error);
    });
  }
  template <class T>
  static Result<Value> copy_of(const std::vector<T> &data, const Shape &shape) {
    return copy_of(data.data(), data.size(), shape);
  }

  /// A tensor over the caller's memory, without a copy; `release` is called when nothing uses it any more.
  template <class T>
  static Result<Value> over(T *data, std::size_t size, const Shape &shape,
                            std::function<void()> release = {}) {
    auto *user = detail::releaser(std::move(release));
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_create_tensor_over(ElementOf<T>::value, shape.data(), shape.size(), data,
                                           size * sizeof(T), user != nullptr ? &detail::released : nullptr,
                                           user, out, error);
    });
  }

  static Result<Value> strings(const std::vector<std::string> &texts, const Shape &shape) {
    std::vector<const char *> pointers;
    std::vector<std::size_t> lengths;
    for (const std::string &text : texts) {
      pointers.push_back(text.data());
      lengths.push_back(text.size());
    }
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_create_strings(shape.data(), shape.size(), pointers.data(),
                                       texts.empty() ? nullptr : lengths.data(), texts.size(), out, error);
    });
  }

  /// A sequence that shares `items`; `element` matters only when there are none.
  static Result<Value> sequence(const std::vector<Value> &items,
                                rukh_element_type element = RUKH_ELEMENT_UNDEFINED) {
    std::vector<const rukh_value *> handles = handles_of(items);
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_create_sequence(handles.data(), handles.size(), element, out, error);
    });
  }

  /// A map from a tensor of keys to values, which it shares.
  static Result<Value> map(const Value &keys, const std::vector<Value> &values,
                           rukh_element_type element = RUKH_ELEMENT_UNDEFINED) {
    std::vector<const rukh_value *> handles = handles_of(values);
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_create_map(keys.get(), handles.data(), handles.size(), element, out, error);
    });
  }

  /// An optional that holds `value`, which it shares; or nothing of type `element`.
  static Result<Value> optional(const Value &value) {
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_create_optional(value.get(), RUKH_ELEMENT_UNDEFINED, out, error);
    });
  }
  static Result<Value> nothing(rukh_element_type element) {
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_create_optional(nullptr, element, out, error);
    });
  }

  /// Takes over a DLPack tensor on success.
  static Result<Value> from_dlpack(DLManagedTensorVersioned *managed) {
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_from_dlpack(managed, out, error);
    });
  }
  Result<DLManagedTensorVersioned *> to_dlpack() const {
    return detail::get<DLManagedTensorVersioned *>([&](DLManagedTensorVersioned **out, rukh_error **error) {
      return rukh_value_to_dlpack(get(), out, error);
    });
  }

  /// The same for DLPack before version 1.0.
  static Result<Value> from_dlpack_legacy(DLManagedTensor *managed) {
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_from_dlpack_legacy(managed, out, error);
    });
  }
  Result<DLManagedTensor *> to_dlpack_legacy() const {
    return detail::get_from<DLManagedTensor *>(rukh_value_to_dlpack_legacy, get());
  }

  /// Another owner of the same elements.
  Result<Value> share() const {
    return make([&](rukh_value **out, rukh_error **error) { return rukh_value_clone(get(), out, error); });
  }
  /// The same elements under another shape.
  Result<Value> reshape(const Shape &shape) const {
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_reshape(get(), shape.data(), shape.size(), out, error);
    });
  }

  Result<rukh_kind> kind() const {
    return detail::get<rukh_kind>(
        [&](rukh_kind *out, rukh_error **error) { return rukh_value_kind(get(), out, error); });
  }
  Result<rukh_element_type> element_type() const {
    return detail::get<rukh_element_type>([&](rukh_element_type *out, rukh_error **error) {
      return rukh_value_element_type(get(), out, error);
    });
  }
  Result<std::string> type_text() const {
    return detail::text([&](char *buf, std::size_t cap, std::size_t *needed, rukh_error **error) {
      return rukh_value_type_text(get(), buf, cap, needed, error);
    });
  }

  Result<Shape> shape() const {
    std::size_t rank = 0;
    Result<void> asked = detail::call(
        [&](rukh_error **error) { return rukh_value_shape(get(), nullptr, 0, &rank, error); });
    if (!asked) return asked.error();
    Shape shape(rank);
    Result<void> filled = detail::call([&](rukh_error **error) {
      return rukh_value_shape(get(), shape.data(), shape.size(), nullptr, error);
    });
    if (!filled) return filled.error();
    return shape;
  }

  /// The elements to read or to write; an error when they are of another type.
  template <class T>
  Result<Span<const T>> data() const {
    const void *pointer = nullptr;
    std::size_t bytes = 0;
    Result<void> result = check<T>();
    if (!result) return result.error();
    result = detail::call(
        [&](rukh_error **error) { return rukh_value_data(get(), &pointer, &bytes, error); });
    if (!result) return result.error();
    return Span<const T>{static_cast<const T *>(pointer), bytes / sizeof(T)};
  }
  template <class T>
  Result<Span<T>> data_mut() {
    void *pointer = nullptr;
    std::size_t bytes = 0;
    Result<void> result = check<T>();
    if (!result) return result.error();
    result = detail::call(
        [&](rukh_error **error) { return rukh_value_data_mut(get(), &pointer, &bytes, error); });
    if (!result) return result.error();
    return Span<T>{static_cast<T *>(pointer), bytes / sizeof(T)};
  }

  Result<std::size_t> element_count() const {
    return detail::get_from<std::size_t>(rukh_value_element_count, get());
  }
  Result<std::string> string(std::size_t index) const {
    return detail::text([&](char *buf, std::size_t cap, std::size_t *needed, rukh_error **error) {
      return rukh_value_string(get(), index, buf, cap, needed, error);
    });
  }
  Result<void> set_string(std::size_t index, const std::string &text) {
    return detail::call([&](rukh_error **error) {
      return rukh_value_set_string(get(), index, text.c_str(), error);
    });
  }

  /// Of a sequence, map or optional.
  Result<std::size_t> item_count() const {
    return detail::get<std::size_t>(
        [&](std::size_t *out, rukh_error **error) { return rukh_value_item_count(get(), out, error); });
  }
  Result<Value> item(std::size_t index) const {
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_item(get(), index, out, error);
    });
  }
  Result<Value> map_keys() const {
    return make([&](rukh_value **out, rukh_error **error) {
      return rukh_value_map_keys(get(), out, error);
    });
  }

 private:
  template <class F>
  static Result<Value> make(F f) {
    return detail::make<Value, rukh_value>(f);
  }

  template <class T>
  Result<void> check() const {
    Result<rukh_element_type> element = element_type();
    if (!element) return element.error();
    if (element.value() == ElementOf<T>::value) return {};
    return Error{RUKH_ERROR_INVALID_ARGUMENT,
                 "the value is a " + type_text().value() + ", not of the C++ type asked for"};
  }

  static std::vector<const rukh_value *> handles_of(const std::vector<Value> &values) {
    std::vector<const rukh_value *> handles;
    for (const Value &value : values) handles.push_back(value.get());
    return handles;
  }
};

}  // namespace rukh

#endif  // RUKH_VALUE_HPP
