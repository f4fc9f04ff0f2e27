// The memory of a device: statistics, its cache, tensors by address; plans of Fourier transforms. For rukh.hpp.

#ifndef RUKH_MEMORY_HPP
#define RUKH_MEMORY_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <rukh/environment.hpp>
#include <rukh/value.hpp>

namespace rukh {

/// Where the elements of a tensor are: on the host, or on a GPU with its number.
struct Location {
  bool on_device;
  std::size_t device_id;
  std::uint64_t address;
};

inline Result<Location> location(const Value &value) {
  std::int32_t on_device = 0;
  Location location{};
  Result<void> result = detail::call_with(rukh_value_device, value.get(), &on_device, &location.device_id,
                                          &location.address);
  if (!result) return result.error();
  location.on_device = on_device != 0;
  return location;
}

/// The names of the statistics of a device's memory.
inline Result<std::vector<std::string>> memory_statistics(const Environment &environment) {
  return detail::texts_from(rukh_environment_memory_statistic_name, environment.get());
}

/// Plans of Fourier transforms that are kept, and how many may be.
struct FourierPlans {
  std::size_t count, limit;
};

/// The memory of a GPU, as the sessions of an environment use it. The environment must outlive this.
class DeviceMemory {
 public:
  explicit DeviceMemory(const Environment &environment, std::size_t device_id = 0)
      : environment_(environment.get()), device_id_(device_id) {}

  /// An arena that sessions with option "use_env_allocators" share. `config`: "key=value;key=value".
  Result<void> create_arena(const std::string &config = std::string()) const {
    return detail::call_with(rukh_environment_create_arena, environment_, device_id_,
                             config.empty() ? nullptr : config.c_str());
  }
  Result<std::uint64_t> statistic(const std::string &name) const {
    return detail::get_from<std::uint64_t>(rukh_environment_memory_statistic, environment_, device_id_, name.c_str());
  }
  /// A table for people.
  Result<std::string> summary() const {
    return detail::text_from(rukh_environment_memory_summary, environment_, device_id_);
  }
  /// Free and total bytes of the device.
  Result<std::pair<std::uint64_t, std::uint64_t>> info() const {
    std::pair<std::uint64_t, std::uint64_t> bytes;
    Result<void> result = detail::call_with(rukh_environment_memory_info, environment_, device_id_, &bytes.first,
                                            &bytes.second);
    if (!result) return result.error();
    return bytes;
  }
  Result<void> reset_peaks() const {
    return detail::call_with(rukh_environment_memory_reset_peaks, environment_, device_id_);
  }
  Result<void> empty_cache() const {
    return detail::call_with(rukh_environment_memory_empty_cache, environment_, device_id_);
  }
  /// Keeps the last events for snapshots; 0 ends it.
  Result<void> record_history(std::size_t events) const {
    return detail::call_with(rukh_environment_memory_record_history, environment_, device_id_, events);
  }
  /// Blocks and history, as JSON.
  Result<std::string> snapshot() const {
    return detail::text_from(rukh_environment_memory_snapshot, environment_, device_id_);
  }

  Result<FourierPlans> fourier_plans() const {
    FourierPlans plans{};
    Result<void> result = detail::call_with(rukh_environment_fourier_plans, environment_, device_id_, &plans.count,
                                            &plans.limit);
    if (!result) return result.error();
    return plans;
  }
  Result<void> set_fourier_plan_limit(std::size_t limit) const {
    return detail::call_with(rukh_environment_set_fourier_plan_limit, environment_, device_id_, limit);
  }
  Result<void> clear_fourier_plans() const {
    return detail::call_with(rukh_environment_clear_fourier_plans, environment_, device_id_);
  }

  /// A tensor in the device's memory, of unspecified content.
  Result<Value> tensor(rukh_element_type element, const Shape &shape) const {
    return detail::make<Value, rukh_value>([&](rukh_value **out, rukh_error **error) {
      return rukh_value_create_device_tensor(environment_, device_id_, element, shape.data(), shape.size(), out, error);
    });
  }
  /// A tensor over device memory of the caller's; `release` is called when nothing uses it any more.
  Result<Value> tensor_over(rukh_element_type element, const Shape &shape, void *address, std::size_t bytes,
                            std::function<void()> release = {}) const {
    auto *user = detail::releaser(std::move(release));
    return detail::make<Value, rukh_value>([&](rukh_value **out, rukh_error **error) {
      return rukh_value_create_device_tensor_over(environment_, device_id_, element, shape.data(), shape.size(),
                                                  address, bytes, user != nullptr ? &detail::released : nullptr, user,
                                                  out, error);
    });
  }

 private:
  rukh_environment *environment_;
  std::size_t device_id_;
};

/// Memory that another API exported, as tensors of a GPU.
class ExternalMemory : public detail::Handle<rukh_external_memory, rukh_external_memory_destroy> {
 public:
  using Handle::Handle;

  /// Imports all `bytes` of it. `handle` is a file descriptor, which belongs to the runtime when this succeeds, or on Windows
  /// a HANDLE as a number. `release` is called when the memory was given back, also when this fails.
  static Result<ExternalMemory> import(const DeviceHandle &device, rukh_external_handle kind, std::int64_t handle,
                                       std::size_t bytes, std::function<void()> release = {}) {
    auto *user = detail::releaser(std::move(release));
    return detail::make<ExternalMemory, rukh_external_memory>([&](rukh_external_memory **out, rukh_error **error) {
      return rukh_external_memory_import(device.get(), kind, handle, bytes,
                                         user != nullptr ? &detail::released_user : nullptr, user, out, error);
    });
  }

  /// A tensor over a part of it, which begins `offset` bytes in. It keeps the memory.
  Result<Value> tensor(rukh_element_type element, const Shape &shape, std::size_t offset = 0) const {
    return detail::make<Value, rukh_value>([&](rukh_value **out, rukh_error **error) {
      return rukh_external_memory_tensor(get(), offset, element, shape.data(), shape.size(), out, error);
    });
  }
};

}  // namespace rukh

#endif  // RUKH_MEMORY_HPP
