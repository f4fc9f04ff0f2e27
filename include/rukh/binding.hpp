// What runs of one session read and write, kept between runs; for rukh.hpp.

#ifndef RUKH_BINDING_HPP
#define RUKH_BINDING_HPP

#include <string>

#include <rukh/device.hpp>
#include <rukh/session.hpp>

namespace rukh {

class IoBinding : public detail::Handle<rukh_io_binding, rukh_io_binding_destroy> {
 public:
  using Handle::Handle;

  static Result<IoBinding> create(const Session &session) {
    return detail::make<IoBinding, rukh_io_binding>([&](rukh_io_binding **out, rukh_error **error) {
      return rukh_io_binding_create(session.get(), out, error);
    });
  }
  Result<void> bind_input(const std::string &name, const Value &value) {
    return detail::call([&](rukh_error **error) {
      return rukh_io_binding_bind_input(get(), name.c_str(), value.get(), error);
    });
  }
  Result<void> bind_output(const std::string &name, const Value &value) {
    return detail::call([&](rukh_error **error) {
      return rukh_io_binding_bind_output(get(), name.c_str(), value.get(), error);
    });
  }
  /// Lets each run allocate the output.
  Result<void> bind_output(const std::string &name) {
    return detail::call([&](rukh_error **error) {
      return rukh_io_binding_bind_output_allocated(get(), name.c_str(), error);
    });
  }
  /// Lets each run allocate the output in the memory of a device.
  Result<void> bind_output(const std::string &name, const DeviceHandle &device,
                           rukh_memory_kind kind = RUKH_MEMORY_DEVICE) {
    return detail::call([&](rukh_error **error) {
      return rukh_io_binding_bind_output_allocated_in(get(), name.c_str(), device.get(), kind, error);
    });
  }
  Result<void> clear_inputs() {
    return detail::call([&](rukh_error **error) { return rukh_io_binding_clear_inputs(get(), error); });
  }
  Result<void> clear_outputs() {
    return detail::call([&](rukh_error **error) { return rukh_io_binding_clear_outputs(get(), error); });
  }
  /// Queues a run and does not wait for the device.
  Result<Completion> run_queued(const RunOptions &options = RunOptions()) {
    return detail::make<Completion, rukh_completion>([&](rukh_completion **out, rukh_error **error) {
      return rukh_io_binding_run_queued(get(), options.get(), out, error);
    });
  }
  Result<void> run(const RunOptions &options = RunOptions()) {
    return detail::call([&](rukh_error **error) {
      return rukh_io_binding_run(get(), options.get(), error);
    });
  }
  Result<Value> output(const std::string &name) const {
    return detail::make<Value, rukh_value>([&](rukh_value **out, rukh_error **error) {
      return rukh_io_binding_output(get(), name.c_str(), out, error);
    });
  }
};

}  // namespace rukh

#endif  // RUKH_BINDING_HPP
