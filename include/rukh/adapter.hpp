// Adapters for rukh.hpp: named tensors in place of a model's inputs, as LoRA fine-tuning makes them.

#ifndef RUKH_ADAPTER_HPP
#define RUKH_ADAPTER_HPP

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <rukh/value.hpp>

namespace rukh {

class Adapter : public detail::Handle<rukh_adapter, rukh_adapter_destroy> {
 public:
  using Handle::Handle;
  /// The numbers that an adapter tells: of the file's format, of itself, and of the model that it was made for.
  struct Versions {
    std::int32_t format;
    std::int32_t adapter;
    std::int32_t model;
  };

  /// Of a file, which is mapped.
  static Result<Adapter> open(const std::string &path) {
    return detail::make<Adapter, rukh_adapter>([&](rukh_adapter **out, rukh_error **error) {
      return rukh_adapter_open(path.c_str(), out, error);
    });
  }
  /// Over the bytes of a file in memory, without a copy; `release` is called when nothing uses them any more.
  static Result<Adapter> from_buffer(const void *data, std::size_t size, std::function<void()> release = {}) {
    auto *user = detail::releaser(std::move(release));
    return detail::make<Adapter, rukh_adapter>([&](rukh_adapter **out, rukh_error **error) {
      return rukh_adapter_open_from_buffer(data, size, user != nullptr ? &detail::released : nullptr, user, out, error);
    });
  }
  /// Of tensors, which are shared.
  static Result<Adapter> create(const std::vector<std::pair<std::string, const Value *>> &parameters,
                                std::int32_t adapter_version = 0, std::int32_t model_version = 0) {
    std::vector<const char *> names;
    std::vector<const rukh_value *> values;
    for (const auto &[name, value] : parameters) {
      names.push_back(name.c_str());
      values.push_back(value->get());
    }
    return detail::make<Adapter, rukh_adapter>([&](rukh_adapter **out, rukh_error **error) {
      return rukh_adapter_create(names.data(), values.data(), names.size(), adapter_version, model_version, out, error);
    });
  }

  Result<void> save(const std::string &path) const {
    return detail::call([&](rukh_error **error) { return rukh_adapter_save(get(), path.c_str(), error); });
  }
  Result<Versions> versions() const {
    Versions versions{};
    Result<void> result = detail::call([&](rukh_error **error) {
      return rukh_adapter_versions(get(), &versions.format, &versions.adapter, &versions.model, error);
    });
    if (!result) return result.error();
    return versions;
  }
  Result<std::size_t> parameter_count() const {
    std::size_t count = 0;
    Result<void> result =
        detail::call([&](rukh_error **error) { return rukh_adapter_parameter_count(get(), &count, error); });
    if (!result) return result.error();
    return count;
  }
  /// The name of the input that it is for.
  Result<std::string> parameter_name(std::size_t index) const {
    return detail::text([&](char *buf, std::size_t cap, std::size_t *needed, rukh_error **error) {
      return rukh_adapter_parameter_name(get(), index, buf, cap, needed, error);
    });
  }
  /// Its tensor, which shares the adapter's elements and must not be written.
  Result<Value> parameter_value(std::size_t index) const {
    return detail::make<Value, rukh_value>([&](rukh_value **out, rukh_error **error) {
      return rukh_adapter_parameter_value(get(), index, out, error);
    });
  }
};

}  // namespace rukh

#endif
