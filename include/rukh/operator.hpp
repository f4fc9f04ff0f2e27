// Operators that a program defines, for C++17. A kernel is a class: an object of it is made once for each node and
// destroyed with the session.
//
//   struct Scale {
//     explicit Scale(const rukh::NodeInfo &node) : factor(node.attribute<float>("factor").value()) {}
//     // May be left out; the kernel then decides the shapes.
//     static rukh::Result<void> shape(rukh::NodeInfo &node) { return node.set_output_shape_of(0, 0); }
//     rukh::Result<void> compute(rukh::KernelContext &context) { ... }
//     float factor;
//   };
//
//   auto scale = rukh::Operator::create<Scale>("my.domain", "Scale", 1).value();
//   scale.add_type_variable("T", {RUKH_ELEMENT_FLOAT, RUKH_ELEMENT_DOUBLE}).value();
//   scale.add_input("x", "T").value();
//   scale.add_output("y", "T").value();
//   scale.add_attribute("factor", 1.0f).value();
//   options.add_operator(scale).value();
//
// An error that a function returns becomes the error of opening or running the model; so does an exception.

#ifndef RUKH_OPERATOR_HPP
#define RUKH_OPERATOR_HPP

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rukh/kernel.hpp>

namespace rukh {

/// An operator that the program defines; see the top of this file.
class Operator : public detail::Handle<rukh_operator, rukh_operator_destroy> {
 public:
  using Handle::Handle;

  /// An operator whose kernel for the CPU is the class `Kernel`.
  template <class Kernel>
  static Result<Operator> create(const std::string &domain, const std::string &name, std::int64_t since = 1) {
    Result<Operator> made = empty(domain, name, since);
    if (!made) return made;
    Result<void> set = detail::call([&](rukh_error **error) {
      return rukh_operator_set_kernel(made.value().get(), &make<Kernel>, &compute<Kernel>, error);
    });
    if (set) set = made.value().template shape_of<Kernel>();
    if (!set) return set.error();
    return made;
  }
  /// An operator without a kernel yet.
  static Result<Operator> empty(const std::string &domain, const std::string &name, std::int64_t since = 1) {
    return detail::make<Operator, rukh_operator>([&](rukh_operator **out, rukh_error **error) {
      return rukh_operator_create(domain.c_str(), name.c_str(), since, nullptr, nullptr, out, error);
    });
  }

  /// Makes the class `Kernel` the kernel for GPUs. It may have `Result<void> prepare(NodeInfo &)`.
  template <class Kernel>
  Result<void> set_gpu_kernel() {
    Result<void> set = detail::call([&](rukh_error **error) {
      rukh_node_callback prepare = nullptr;
      if constexpr (has_prepare<Kernel>(0)) prepare = &Operator::prepare<Kernel>;
      return rukh_operator_set_gpu_kernel(get(), &make<Kernel>, prepare, &compute<Kernel>, error);
    });
    return set ? shape_of<Kernel>() : set;
  }

  Result<void> add_type_variable(const std::string &name, const std::vector<rukh_element_type> &allowed = {}) {
    return detail::call([&](rukh_error **error) {
      return rukh_operator_add_type_variable(get(), name.c_str(), allowed.data(), allowed.size(), error);
    });
  }
  Result<void> add_input(const std::string &name, const std::string &type,
                         rukh_arity arity = RUKH_ARITY_REQUIRED) {
    return detail::call([&](rukh_error **error) {
      return rukh_operator_add_input(get(), name.c_str(), type.c_str(), arity, error);
    });
  }
  Result<void> add_output(const std::string &name, const std::string &type,
                          rukh_arity arity = RUKH_ARITY_REQUIRED) {
    return detail::call([&](rukh_error **error) {
      return rukh_operator_add_output(get(), name.c_str(), type.c_str(), arity, error);
    });
  }
  Result<void> set_shape_input(std::size_t index) {
    return detail::call(
        [&](rukh_error **error) { return rukh_operator_set_shape_input(get(), index, error); });
  }
  /// Whether the same inputs give the same outputs and nothing else happens, so that nodes may be computed ahead.
  Result<void> set_pure(bool pure = true) {
    return detail::call([&](rukh_error **error) { return rukh_operator_set_pure(get(), pure ? 1 : 0, error); });
  }
  /// Whether the kernel for GPUs only gives work to the stream, so that runs may be replayed without calling it.
  Result<void> set_capturable(bool capturable = true) {
    return detail::call(
        [&](rukh_error **error) { return rukh_operator_set_capturable(get(), capturable ? 1 : 0, error); });
  }
  /// An attribute without a default.
  Result<void> declare_attribute(const std::string &name, rukh_attribute_type type, bool required = false) {
    return detail::call([&](rukh_error **error) {
      return rukh_operator_add_attribute(get(), name.c_str(), type, required ? 1 : 0, error);
    });
  }
  /// Attributes with a default.
  Result<void> add_attribute(const std::string &name, float value) {
    return add(name, RUKH_ATTRIBUTE_FLOAT, &value, 1);
  }
  Result<void> add_attribute(const std::string &name, std::int64_t value) {
    return add(name, RUKH_ATTRIBUTE_INT, &value, 1);
  }
  Result<void> add_attribute(const std::string &name, const std::string &value) {
    return add(name, RUKH_ATTRIBUTE_STRING, value.c_str(), 1);
  }
  Result<void> add_attribute(const std::string &name, const char *value) {
    return add(name, RUKH_ATTRIBUTE_STRING, value, 1);
  }
  Result<void> add_attribute(const std::string &name, const Value &value) {
    return add(name, RUKH_ATTRIBUTE_TENSOR, value.get(), 1);
  }
  Result<void> add_attribute(const std::string &name, const std::vector<float> &values) {
    return add(name, RUKH_ATTRIBUTE_FLOATS, values.data(), values.size());
  }
  Result<void> add_attribute(const std::string &name, const std::vector<std::int64_t> &values) {
    return add(name, RUKH_ATTRIBUTE_INTS, values.data(), values.size());
  }
  Result<void> add_attribute(const std::string &name, const std::vector<std::string> &values) {
    std::vector<const char *> texts;
    for (const std::string &value : values) texts.push_back(value.c_str());
    return add(name, RUKH_ATTRIBUTE_STRINGS, texts.data(), texts.size());
  }

 private:
  Result<void> add(const std::string &name, rukh_attribute_type type, const void *data, std::size_t count) {
    return detail::call([&](rukh_error **error) {
      return rukh_operator_add_attribute_with_default(get(), name.c_str(), type, data, count, error);
    });
  }

  template <class Kernel>
  static constexpr auto has_shape(int) -> decltype(Kernel::shape(std::declval<NodeInfo &>()), bool()) {
    return true;
  }
  template <class Kernel>
  static constexpr bool has_shape(long) {
    return false;
  }
  template <class Kernel>
  static constexpr auto has_prepare(int)
      -> decltype(std::declval<Kernel &>().prepare(std::declval<NodeInfo &>()), bool()) {
    return true;
  }
  template <class Kernel>
  static constexpr bool has_prepare(long) {
    return false;
  }

  template <class Kernel>
  Result<void> shape_of() {
    if constexpr (has_shape<Kernel>(0)) {
      return detail::call([&](rukh_error **error) {
        return rukh_operator_set_shape_function(get(), &Operator::shape<Kernel>, error);
      });
    } else {
      return {};
    }
  }

  /// Runs `f` and tells its failure by `set_error`.
  template <class F, class SetError>
  static rukh_status stop(F f, SetError set_error) noexcept {
#if RUKH_HAS_EXCEPTIONS
    try {
#endif
      Result<void> result = f();
      if (result) return RUKH_OK;
      set_error(result.error().message.c_str());
      return result.error().status;
#if RUKH_HAS_EXCEPTIONS
    } catch (const Exception &e) {
      set_error(e.what());
      return e.status();
    } catch (const std::bad_alloc &e) {
      set_error(e.what());
      return RUKH_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception &e) {
      set_error(e.what());
      return RUKH_ERROR_INVALID_DATA;
    } catch (...) {
      set_error("an exception that is no std::exception");
      return RUKH_ERROR_INVALID_DATA;
    }
#endif
  }
  template <class F>
  static rukh_status about(rukh_node_info *node, F f) noexcept {
    return stop([&] { NodeInfo info(node); return f(info); },
                [&](const char *text) { static_cast<void>(rukh_node_info_set_error(node, text, nullptr)); });
  }

  template <class Kernel>
  static rukh_status shape(rukh_node_info *node, void *) noexcept {
    return about(node, [](NodeInfo &info) { return Kernel::shape(info); });
  }
  template <class Kernel>
  static rukh_status make(rukh_node_info *node, void *) noexcept {
    return about(node, [node](NodeInfo &info) -> Result<void> {
      auto kernel = std::make_unique<Kernel>(info);
      Result<void> set = detail::call([&](rukh_error **error) {
        return rukh_node_info_set_state(node, kernel.get(), &destroy<Kernel>, error);
      });
      if (set) kernel.release();
      return set;
    });
  }
  template <class Kernel>
  static void destroy(void *state) noexcept {
    delete static_cast<Kernel *>(state);
  }
  template <class Kernel>
  static rukh_status prepare(rukh_node_info *node, void *) noexcept {
    return about(node, [node](NodeInfo &info) -> Result<void> {
      void *state = nullptr;
      Result<void> got = detail::call(
          [&](rukh_error **error) { return rukh_node_info_state(node, &state, error); });
      if (!got) return got;
      return static_cast<Kernel *>(state)->prepare(info);
    });
  }
  template <class Kernel>
  static rukh_status compute(rukh_kernel_context *handle, void *) noexcept {
    return stop(
        [&]() -> Result<void> {
          void *state = nullptr;
          Result<void> got = detail::call([&](rukh_error **error) {
            return rukh_kernel_context_state(handle, &state, error);
          });
          if (!got) return got;
          KernelContext context(handle);
          return static_cast<Kernel *>(state)->compute(context);
        },
        [&](const char *text) { static_cast<void>(rukh_kernel_context_set_error(handle, text, nullptr)); });
  }
};

/// What the entry function of a shared library of operators adds its operators to.
class OperatorRegistry {
 public:
  explicit OperatorRegistry(rukh_operator_registry *registry) : registry_(registry) {}

  Result<void> add(const Operator &op) { return detail::call_with(rukh_operator_registry_add, registry_, op.get()); }
  /// Why the library's operators cannot be used; the entry function then returns another status than RUKH_OK.
  Result<void> set_error(const std::string &text) {
    return detail::call_with(rukh_operator_registry_set_error, registry_, text.c_str());
  }

 private:
  rukh_operator_registry *registry_;
};

}  // namespace rukh

#endif  // RUKH_OPERATOR_HPP
