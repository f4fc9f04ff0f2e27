// What the functions of an operator that the program defines are lent: a node, and one call of its kernel. See
// operator.hpp.

#ifndef RUKH_KERNEL_HPP
#define RUKH_KERNEL_HPP

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <rukh/value.hpp>

namespace rukh {

/// A value of the library's, lent for the time of a call. Empty where there is none.
class BorrowedValue {
 public:
  BorrowedValue() noexcept = default;
  explicit BorrowedValue(const rukh_value *value) noexcept : value_(const_cast<rukh_value *>(value)) {}
  BorrowedValue(BorrowedValue &&) noexcept = default;
  BorrowedValue &operator=(BorrowedValue &&other) noexcept {
    value_.release();
    value_ = std::move(other.value_);
    return *this;
  }
  ~BorrowedValue() { value_.release(); }

  explicit operator bool() const noexcept { return static_cast<bool>(value_); }
  const Value &operator*() const noexcept { return value_; }
  const Value *operator->() const noexcept { return &value_; }
  Value &operator*() noexcept { return value_; }
  Value *operator->() noexcept { return &value_; }

 private:
  Value value_;
};

/// A node whose operator the program defined, during a call that is about it.
class NodeInfo {
 public:
  explicit NodeInfo(rukh_node_info *node) noexcept : node_(node) {}
  rukh_node_info *get() const noexcept { return node_; }

  Result<std::string> name() const {
    Result<const char *> name = ask<const char *>(rukh_node_info_name);
    if (!name) return name.error();
    return std::string(name.value());
  }
  Result<std::int64_t> version() const { return ask<std::int64_t>(rukh_node_info_version); }
  Result<std::size_t> input_count() const { return ask<std::size_t>(rukh_node_info_input_count); }
  Result<std::size_t> output_count() const { return ask<std::size_t>(rukh_node_info_output_count); }
  bool has_input(std::size_t index) const {
    std::int32_t given = 0;
    return rukh_node_info_has_input(node_, index, &given, nullptr) == RUKH_OK && given == 1;
  }
  bool has_output(std::size_t index) const {
    std::int32_t wanted = 0;
    return rukh_node_info_has_output(node_, index, &wanted, nullptr) == RUKH_OK && wanted == 1;
  }
  bool has_attribute(const std::string &name) const {
    std::int32_t given = 0;
    return rukh_node_info_has_attribute(node_, name.c_str(), &given, nullptr) == RUKH_OK && given == 1;
  }
  Result<rukh_element_type> input_element_type(std::size_t index) const {
    return detail::get<rukh_element_type>([&](rukh_element_type *out, rukh_error **error) {
      return rukh_node_info_input_type(node_, index, nullptr, out, error);
    });
  }
  /// -1 for a dimension that is not known; an error while the rank is not known.
  Result<Shape> input_shape(std::size_t index) const {
    Result<std::int64_t> rank = detail::get<std::int64_t>([&](std::int64_t *out, rukh_error **error) {
      return rukh_node_info_input_shape(node_, index, nullptr, 0, out, error);
    });
    if (!rank) return rank.error();
    if (rank.value() < 0) return Error{RUKH_ERROR_NOT_FOUND, "the rank of the input is not known yet"};
    Shape shape(static_cast<std::size_t>(rank.value()));
    Result<void> filled = detail::call([&](rukh_error **error) {
      return rukh_node_info_input_shape(node_, index, shape.data(), shape.size(), nullptr, error);
    });
    if (!filled) return filled.error();
    return shape;
  }
  /// Empty where the value is not known.
  Result<BorrowedValue> input_value(std::size_t index) const {
    Result<const rukh_value *> value =
        detail::get<const rukh_value *>([&](const rukh_value **out, rukh_error **error) {
          return rukh_node_info_input_value(node_, index, out, error);
        });
    if (!value) return value.error();
    return BorrowedValue(value.value());
  }

  /// An attribute as `float`, `std::int64_t`, `std::string`, `std::vector` of one of these, or `BorrowedValue`.
  template <class T>
  Result<T> attribute(const std::string &name) const {
    const char *key = name.c_str();
    if constexpr (std::is_same_v<T, float>) {
      return get<float>(rukh_node_info_attribute_float, key);
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      return get<std::int64_t>(rukh_node_info_attribute_int, key);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return detail::text([&](char *buf, std::size_t cap, std::size_t *needed, rukh_error **error) {
        return rukh_node_info_attribute_string(node_, key, buf, cap, needed, error);
      });
    } else if constexpr (std::is_same_v<T, std::vector<float>>) {
      return list<float>(rukh_node_info_attribute_floats, key);
    } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
      return list<std::int64_t>(rukh_node_info_attribute_ints, key);
    } else if constexpr (std::is_same_v<T, BorrowedValue>) {
      Result<const rukh_value *> value = get<const rukh_value *>(rukh_node_info_attribute_tensor, key);
      if (!value) return value.error();
      return BorrowedValue(value.value());
    } else {
      static_assert(std::is_same_v<T, std::vector<std::string>>, "attributes have no such type");
      return texts(key);
    }
  }

  /// For shape functions.
  Result<void> set_output_type(std::size_t output, rukh_element_type element) {
    return detail::call([&](rukh_error **error) {
      return rukh_node_info_set_output_type(node_, output, element, error);
    });
  }
  Result<void> set_output_shape(std::size_t output, const Shape &shape) {
    return detail::call([&](rukh_error **error) {
      return rukh_node_info_set_output_shape(node_, output, shape.data(), shape.size(), error);
    });
  }
  Result<void> set_output_shape_of(std::size_t output, std::size_t input) {
    return detail::call([&](rukh_error **error) {
      return rukh_node_info_set_output_shape_of(node_, output, input, error);
    });
  }
  Result<void> set_output_dim_of(std::size_t output, std::size_t axis, std::size_t input,
                                 std::size_t input_axis) {
    return detail::call([&](rukh_error **error) {
      return rukh_node_info_set_output_dim_of(node_, output, axis, input, input_axis, error);
    });
  }
  /// For what prepares a kernel for GPUs.
  Result<void> set_scratch(std::size_t bytes) {
    return detail::call(
        [&](rukh_error **error) { return rukh_node_info_set_scratch(node_, bytes, error); });
  }

 private:
  template <class T, class F>
  Result<T> ask(F f) const {
    return detail::get<T>([&](T *out, rukh_error **error) { return f(node_, out, error); });
  }
  template <class T, class F>
  Result<T> get(F f, const char *key) const {
    return detail::get<T>([&](T *out, rukh_error **error) { return f(node_, key, out, error); });
  }
  template <class T, class F>
  Result<std::vector<T>> list(F f, const char *key) const {
    const T *values = nullptr;
    std::size_t count = 0;
    Result<void> result =
        detail::call([&](rukh_error **error) { return f(node_, key, &values, &count, error); });
    if (!result) return result.error();
    return count == 0 ? std::vector<T>() : std::vector<T>(values, values + count);
  }
  Result<std::vector<std::string>> texts(const char *key) const {
    Result<std::size_t> count = get<std::size_t>(rukh_node_info_attribute_string_count, key);
    if (!count) return count.error();
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count.value(); i++) {
      Result<std::string> text =
          detail::text([&](char *buf, std::size_t cap, std::size_t *needed, rukh_error **error) {
            return rukh_node_info_attribute_string_at(node_, key, i, buf, cap, needed, error);
          });
      if (!text) return text.error();
      texts.push_back(text.value());
    }
    return texts;
  }

  rukh_node_info *node_;
};

/// One call of a kernel.
class KernelContext {
 public:
  explicit KernelContext(rukh_kernel_context *context) noexcept : context_(context) {}
  rukh_kernel_context *get() const noexcept { return context_; }

  Result<std::size_t> input_count() const { return ask<std::size_t>(rukh_kernel_context_input_count); }
  Result<std::size_t> output_count() const { return ask<std::size_t>(rukh_kernel_context_output_count); }
  /// Empty for an input that the node leaves out.
  Result<BorrowedValue> input(std::size_t index) const {
    Result<const rukh_value *> value =
        detail::get<const rukh_value *>([&](const rukh_value **out, rukh_error **error) {
          return rukh_kernel_context_input(context_, index, out, error);
        });
    if (!value) return value.error();
    return BorrowedValue(value.value());
  }
  /// Empty for an output that nobody wants.
  Result<BorrowedValue> output(std::size_t index, const Shape &shape) {
    Result<rukh_value *> value = detail::get<rukh_value *>([&](rukh_value **out, rukh_error **error) {
      return rukh_kernel_context_output(context_, index, shape.data(), shape.size(), out, error);
    });
    if (!value) return value.error();
    return BorrowedValue(value.value());
  }
  Result<void> set_output(std::size_t index, const Value &value) {
    return detail::call([&](rukh_error **error) {
      return rukh_kernel_context_set_output(context_, index, value.get(), error);
    });
  }
  bool cancelled() const {
    std::int32_t cancelled = 0;
    return rukh_kernel_context_cancelled(context_, &cancelled, nullptr) == RUKH_OK && cancelled == 1;
  }
  Result<std::size_t> thread_count() const { return ask<std::size_t>(rukh_kernel_context_thread_count); }
  /// Calls `body(i)` for each number below `count` on the session's threads. It must not throw.
  template <class F>
  Result<void> parallel_for(std::size_t count, F &&body) {
    using Body = std::remove_reference_t<F>;
    auto call = [](std::size_t index, void *user) noexcept { (*static_cast<Body *>(user))(index); };
    void *user = const_cast<void *>(static_cast<const void *>(&body));
    return detail::call([&](rukh_error **error) {
      return rukh_kernel_context_parallel_for(context_, count, call, user, error);
    });
  }
  /// In kernels for GPUs.
  Result<void *> stream() const { return ask<void *>(rukh_kernel_context_stream); }
  Result<void *> scratch() const {
    return detail::get<void *>([&](void **out, rukh_error **error) {
      return rukh_kernel_context_scratch(context_, out, nullptr, error);
    });
  }

 private:
  template <class T, class F>
  Result<T> ask(F f) const {
    return detail::get<T>([&](T *out, rukh_error **error) { return f(context_, out, error); });
  }

  rukh_kernel_context *context_;
};

}  // namespace rukh

#endif  // RUKH_KERNEL_HPP
