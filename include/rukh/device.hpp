// Devices as handles, tensors in their memory, copies and streams; for rukh.hpp.

#ifndef RUKH_DEVICE_HPP
#define RUKH_DEVICE_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <rukh/value.hpp>

namespace rukh {

/// Names a device: a provider and a number.
class DeviceHandle : public detail::Handle<rukh_device, rukh_device_destroy> {
 public:
  using Handle::Handle;

  Result<std::string> provider() const {
    const char *name = "";
    Result<void> result =
        detail::call([&](rukh_error **error) { return rukh_device_provider(get(), &name, error); });
    if (!result) return result.error();
    return std::string(name);
  }
  /// Its number among those of its provider.
  Result<std::size_t> id() const {
    return detail::get<std::size_t>(
        [&](std::size_t *out, rukh_error **error) { return rukh_device_id(get(), out, error); });
  }
  /// A property by its name, "" where it has none of it; rukh_device_property_count says which there are.
  Result<std::string> property(const std::string &key) const {
    return detail::borrowed_from(rukh_device_find_property, get(), key.c_str());
  }
  /// A tensor in its memory: zeros on the host, else of unspecified content.
  Result<Value> tensor(rukh_element_type element, const Shape &shape,
                       rukh_memory_kind kind = RUKH_MEMORY_DEVICE) const {
    return detail::make<Value, rukh_value>([&](rukh_value **out, rukh_error **error) {
      return rukh_value_create_tensor_in(get(), kind, element, shape.data(), shape.size(), out, error);
    });
  }
};

/// A run that was started, or a run or a copy whose work is queued on a device.
class Completion : public detail::Handle<rukh_completion, rukh_completion_destroy> {
 public:
  using Handle::Handle;

  Result<bool> is_done() const {
    Result<std::int32_t> done = detail::get<std::int32_t>(
        [&](std::int32_t *out, rukh_error **error) { return rukh_completion_is_done(get(), out, error); });
    if (!done) return done.error();
    return done.value() != 0;
  }
  Result<void> wait() const {
    return detail::call([&](rukh_error **error) { return rukh_completion_wait(get(), error); });
  }
  /// The outputs of a run that was started, once it has ended; none of what is queued.
  Result<std::vector<Value>> outputs() const {
    Result<void> result = wait();
    if (!result) return result.error();
    Result<std::size_t> count = detail::get_from<std::size_t>(rukh_completion_output_count, get());
    if (!count) return count.error();
    std::vector<Value> values;
    for (std::size_t i = 0; i < count.value(); i++) {
      Result<Value> value = detail::make<Value, rukh_value>(
          [&](rukh_value **out, rukh_error **error) { return rukh_completion_output(get(), i, out, error); });
      if (!value) return value.error();
      values.push_back(std::move(value.value()));
    }
    return values;
  }
  /// The event behind the work, as a number.
  Result<std::uint64_t> event() const {
    return detail::get<std::uint64_t>(
        [&](std::uint64_t *out, rukh_error **error) { return rukh_completion_event(get(), out, error); });
  }
};

/// A queue of work for a GPU, which the caller orders.
class Stream : public detail::Handle<rukh_stream, rukh_stream_destroy> {
 public:
  using Handle::Handle;

  static Result<Stream> create(const DeviceHandle &device) {
    return detail::make<Stream, rukh_stream>([&](rukh_stream **out, rukh_error **error) {
      return rukh_stream_create(device.get(), out, error);
    });
  }
  /// The runtime's handle, as a number.
  Result<std::uint64_t> address() const {
    return detail::get<std::uint64_t>(
        [&](std::uint64_t *out, rukh_error **error) { return rukh_stream_address(get(), out, error); });
  }
  Result<void> wait() const {
    return detail::call([&](rukh_error **error) { return rukh_stream_wait(get(), error); });
  }
  /// Stands for all that the stream was given until now.
  Result<Completion> record() const {
    return detail::make<Completion, rukh_completion>([&](rukh_completion **out, rukh_error **error) {
      return rukh_stream_record(get(), out, error);
    });
  }
  /// What the stream is given from now on begins when the work is done, which may be in another stream.
  Result<void> wait_for(const Completion &work) const {
    return detail::call([&](rukh_error **error) { return rukh_stream_wait_for(get(), work.get(), error); });
  }
};

/// The kind of memory that a tensor lies in.
inline Result<rukh_memory_kind> memory_kind(const Value &value) {
  return detail::get<rukh_memory_kind>([&](rukh_memory_kind *out, rukh_error **error) {
    return rukh_value_memory_kind(value.get(), out, nullptr, error);
  });
}

/// Copies elements between tensors, wherever they are, and waits for it.
inline Result<void> copy(const Value &from, Value &to) {
  return detail::call([&](rukh_error **error) { return rukh_value_copy(from.get(), to.get(), error); });
}

/// Queues such a copy in a stream, by its address. The completion keeps both values.
inline Result<Completion> copy_queued(const Value &from, Value &to, std::uint64_t stream) {
  return detail::make<Completion, rukh_completion>([&](rukh_completion **out, rukh_error **error) {
    return rukh_value_copy_queued(from.get(), to.get(), stream, out, error);
  });
}

}  // namespace rukh

#endif  // RUKH_DEVICE_HPP
