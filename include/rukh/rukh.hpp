// rukh for C++17: owners for the handles of rukh.h that can be moved but not copied, and results in place
// of statuses. What a function does is said in rukh.h.
//
//   auto environment = rukh::Environment::create().value();
//   auto session = rukh::Session::open(environment, "model.onnx").value();
//   auto input = rukh::Value::copy_of(pixels, {1, 3, 224, 224}).value();
//   std::vector<rukh::Value> outputs = session.run({{"image", &input}}, {"scores"}).value();
//   for (float score : outputs[0].data<float>().value()) ...
//
// Works with -fno-exceptions; see result.hpp. Functions given to the library (log, release, callbacks)
// must not throw.

#ifndef RUKH_HPP
#define RUKH_HPP

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rukh/adapter.hpp>
#include <rukh/device.hpp>
#include <rukh/operator.hpp>
#include <rukh/value.hpp>

namespace rukh {

inline std::string_view version() noexcept { return rukh_version_string(); }

/// Receives log messages, from any thread.
using Log = std::function<void(rukh_log_level, std::string_view)>;

class EnvironmentOptions
    : public detail::Handle<rukh_environment_options, rukh_environment_options_destroy> {
 public:
  using Handle::Handle;

  static Result<EnvironmentOptions> create() {
    return detail::make<EnvironmentOptions, rukh_environment_options>(rukh_environment_options_create);
  }
  Result<void> set(const std::string &key, const std::string &value) {
    return detail::call([&](rukh_error **error) {
      return rukh_environment_options_set(get(), key.c_str(), value.c_str(), error);
    });
  }
  Result<void> set_log(rukh_log_level level, Log log) {
    auto *user = new Log(std::move(log));
    return detail::call([&](rukh_error **error) {
      return rukh_environment_options_set_log(get(), level, &EnvironmentOptions::write, user,
                                              &EnvironmentOptions::release_log, error);
    });
  }

 private:
  static void write(void *user, rukh_log_level level, const char *message) noexcept {
    (*static_cast<Log *>(user))(level, message);
  }
  static void release_log(void *user) noexcept { delete static_cast<Log *>(user); }
};

/// A device of this machine; rukh_device_property_count says which properties there are.
struct Device {
  std::string provider;
  std::string name;
  std::string arch;
  std::uint64_t memory;
  std::vector<std::pair<std::string, std::string>> properties;
};

class Environment : public detail::Handle<rukh_environment, rukh_environment_destroy> {
 public:
  using Handle::Handle;

  static Result<Environment> create() { return create(EnvironmentOptions()); }
  static Result<Environment> create(const EnvironmentOptions &options) {
    return detail::make<Environment, rukh_environment>(
        [&](rukh_environment **out, rukh_error **error) {
          return rukh_environment_create(options.get(), out, error);
        });
  }

  /// For sessions that are opened from now on; see operator.hpp.
  Result<void> add_operator(const Operator &op) {
    return detail::call(
        [&](rukh_error **error) { return rukh_environment_add_operator(get(), op.get(), error); });
  }

  /// The device of a provider by its number there; see device.hpp.
  Result<DeviceHandle> device(const std::string &provider, std::size_t device_id = 0) const {
    return detail::make<DeviceHandle, rukh_device>([&](rukh_device **out, rukh_error **error) {
      return rukh_environment_find_device(get(), provider.c_str(), device_id, out, error);
    });
  }

  Result<std::vector<Device>> devices() const {
    std::size_t count = 0;
    Result<void> result = detail::call(
        [&](rukh_error **error) { return rukh_environment_device_count(get(), &count, error); });
    std::vector<Device> devices;
    for (std::size_t i = 0; result && i < count; i++) {
      result = detail::call([&](rukh_error **error) { return describe(i, devices, error); });
    }
    if (!result) return result.error();
    return devices;
  }

 private:
  rukh_status describe(std::size_t index, std::vector<Device> &devices, rukh_error **error) const {
    rukh_device *made = nullptr;
    rukh_status status = rukh_environment_device(get(), index, &made, error);
    detail::Handle<rukh_device, rukh_device_destroy> handle(made);
    const char *provider = "", *name = "", *arch = "", *key = "", *value = "";
    Device device{};
    std::size_t count = 0;
    if (status == RUKH_OK) status = rukh_device_provider(made, &provider, error);
    if (status == RUKH_OK) status = rukh_device_name(made, &name, error);
    if (status == RUKH_OK) status = rukh_device_arch(made, &arch, error);
    if (status == RUKH_OK) status = rukh_device_memory(made, &device.memory, error);
    if (status == RUKH_OK) status = rukh_device_property_count(made, &count, error);
    for (std::size_t i = 0; status == RUKH_OK && i < count; i++) {
      status = rukh_device_property(made, i, &key, &value, error);
      device.properties.emplace_back(key, value);
    }
    device.provider = provider;
    device.name = name;
    device.arch = arch;
    if (status == RUKH_OK) devices.push_back(std::move(device));
    return status;
  }
};

class SessionOptions : public detail::Handle<rukh_session_options, rukh_session_options_destroy> {
 public:
  using Handle::Handle;

  static Result<SessionOptions> create() {
    return detail::make<SessionOptions, rukh_session_options>(rukh_session_options_create);
  }
  Result<void> set(const std::string &key, const std::string &value) {
    return detail::call([&](rukh_error **error) {
      return rukh_session_options_set(get(), key.c_str(), value.c_str(), error);
    });
  }
  Result<std::string> option(const std::string &key) const {
    return detail::text([&](char *buf, std::size_t cap, std::size_t *needed, rukh_error **error) {
      return rukh_session_options_get(get(), key.c_str(), buf, cap, needed, error);
    });
  }
  Result<void> add_provider(const std::string &name,
                            const std::vector<std::pair<std::string, std::string>> &options = {}) {
    std::vector<const char *> keys, values;
    for (const auto &[key, value] : options) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
    return detail::call([&](rukh_error **error) {
      return rukh_session_options_add_provider(get(), name.c_str(), keys.data(), values.data(), keys.size(),
                                               error);
    });
  }
  /// The operator as it is now; see operator.hpp.
  Result<void> add_operator(const Operator &op) {
    return detail::call(
        [&](rukh_error **error) { return rukh_session_options_add_operator(get(), op.get(), error); });
  }
  /// A tensor in place of an initializer of the model.
  Result<void> add_initializer(const std::string &name, const Value &value) {
    return detail::call([&](rukh_error **error) {
      return rukh_session_options_add_initializer(get(), name.c_str(), value.get(), error);
    });
  }
  /// An adapter's tensors in place of initializers of the model, for good.
  Result<void> add_adapter(const Adapter &adapter) {
    return detail::call(
        [&](rukh_error **error) { return rukh_session_options_add_adapter(get(), adapter.get(), error); });
  }
  /// The bytes of a file of external data, without a copy; `release` is called when nothing uses them any more.
  Result<void> add_external_file(const std::string &location, const void *data, std::size_t size,
                                 std::function<void()> release = {}) {
    auto *user = detail::releaser(std::move(release));
    return detail::call([&](rukh_error **error) {
      return rukh_session_options_add_external_file(get(), location.c_str(), data, size,
                                                    user != nullptr ? &detail::released : nullptr, user, error);
    });
  }
  Result<void> set_dimension(const std::string &name, std::int64_t size) {
    return detail::call([&](rukh_error **error) {
      return rukh_session_options_set_dimension(get(), name.c_str(), size, error);
    });
  }
};

class RunOptions : public detail::Handle<rukh_run_options, rukh_run_options_destroy> {
 public:
  using Handle::Handle;

  static Result<RunOptions> create() {
    return detail::make<RunOptions, rukh_run_options>(rukh_run_options_create);
  }
  Result<void> set(const std::string &key, const std::string &value) {
    return detail::call([&](rukh_error **error) {
      return rukh_run_options_set(get(), key.c_str(), value.c_str(), error);
    });
  }
  /// What runs are not given comes from the adapter, where it has it; the last one added counts.
  Result<void> add_adapter(const Adapter &adapter) {
    return detail::call(
        [&](rukh_error **error) { return rukh_run_options_add_adapter(get(), adapter.get(), error); });
  }
  /// Ends the runs that use these options, from any thread.
  Result<void> cancel() {
    return detail::call([&](rukh_error **error) { return rukh_run_options_cancel(get(), error); });
  }
  Result<void> reset() {
    return detail::call([&](rukh_error **error) { return rukh_run_options_reset(get(), error); });
  }
};

/// An input or output of a model. A dimension that is not known before it runs is -1.
struct Port {
  std::string name;
  rukh_kind kind;
  rukh_element_type element;
  /// Type and shape for people.
  std::string type;
  bool rank_known;
  Shape shape;
};

/// Names with values, as a run takes them.
using Inputs = std::vector<std::pair<std::string, const Value *>>;

class Session : public detail::Handle<rukh_session, rukh_session_destroy> {
 public:
  using Handle::Handle;
  /// Receives the outputs of an asynchronous run, on a thread of the library.
  using Callback = std::function<void(Result<std::vector<Value>>)>;

  static Result<Session> open(const Environment &environment, const std::string &path,
                              const SessionOptions &options = SessionOptions()) {
    return detail::make<Session, rukh_session>([&](rukh_session **out, rukh_error **error) {
      return rukh_session_create(environment.get(), path.c_str(), options.get(), out, error);
    });
  }
  static Result<Session> from_memory(const Environment &environment, const void *data, std::size_t size,
                                     const SessionOptions &options = SessionOptions()) {
    return detail::make<Session, rukh_session>([&](rukh_session **out, rukh_error **error) {
      return rukh_session_create_from_memory(environment.get(), data, size, options.get(), out, error);
    });
  }

  /// Over the bytes of a model in memory, without a copy; `release` is called when nothing uses them any more.
  static Result<Session> from_buffer(const Environment &environment, const void *data, std::size_t size,
                                     const SessionOptions &options = SessionOptions(),
                                     std::function<void()> release = {}) {
    auto *user = detail::releaser(std::move(release));
    return detail::make<Session, rukh_session>([&](rukh_session **out, rukh_error **error) {
      return rukh_session_create_from_buffer(environment.get(), data, size,
                                             user != nullptr ? &detail::released : nullptr, user, options.get(), out,
                                             error);
    });
  }

  /// The device that runs nodes: the GPU when any node runs there, else the CPU.
  Result<DeviceHandle> device() const {
    return detail::make<DeviceHandle, rukh_device>(
        [&](rukh_device **out, rukh_error **error) { return rukh_session_device(get(), out, error); });
  }

  Result<std::vector<Port>> inputs() const {
    return ports(rukh_session_input_count, rukh_session_input_name, rukh_session_input_type,
                 rukh_session_input_type_text, rukh_session_input_shape);
  }
  Result<std::vector<Port>> outputs() const {
    return ports(rukh_session_output_count, rukh_session_output_name, rukh_session_output_type,
                 rukh_session_output_type_text, rukh_session_output_shape);
  }

  /// Runs the model and gives the outputs asked for, in that order.
  Result<std::vector<Value>> run(const Inputs &inputs, const std::vector<std::string> &outputs,
                                 const RunOptions &options = RunOptions()) const {
    const Request request(inputs, outputs);
    std::vector<rukh_value *> made(outputs.size());
    Result<void> result = detail::call([&](rukh_error **error) {
      return rukh_session_run(get(), options.get(), request.input_names.data(), request.values.data(),
                              inputs.size(), request.output_names.data(), outputs.size(), made.data(), error);
    });
    if (!result) return result.error();
    return own(made.data(), made.size());
  }

  /// Starts a run; `callback` receives the result if this call succeeds.
  Result<void> run_async(const Inputs &inputs, const std::vector<std::string> &outputs, Callback callback,
                         const RunOptions &options = RunOptions()) const {
    const Request request(inputs, outputs);
    auto user = std::make_unique<Callback>(std::move(callback));
    Result<void> result = detail::call([&](rukh_error **error) {
      return rukh_session_run_async(get(), options.get(), request.input_names.data(), request.values.data(),
                                    inputs.size(), request.output_names.data(), outputs.size(),
                                    &Session::finished, user.get(), error);
    });
    if (result) static_cast<void>(user.release());
    return result;
  }

  Result<std::string> profile() const {
    return detail::text([&](char *buf, std::size_t cap, std::size_t *needed, rukh_error **error) {
      return rukh_session_profile(get(), buf, cap, needed, error);
    });
  }

  Result<std::string> tuning_results() const {
    return detail::text([&](char *buf, std::size_t cap, std::size_t *needed, rukh_error **error) {
      return rukh_session_tuning_results(get(), buf, cap, needed, error);
    });
  }

  /// How many results were taken.
  Result<std::size_t> add_tuning_results(const std::string &text) const {
    std::size_t taken = 0;
    Result<void> result = detail::call([&](rukh_error **error) {
      return rukh_session_add_tuning_results(get(), text.c_str(), &taken, error);
    });
    if (!result) return result.error();
    return taken;
  }

 private:
  /// A run's arguments as C takes them; borrows from the vectors it is made from.
  struct Request {
    std::vector<const char *> input_names, output_names;
    std::vector<const rukh_value *> values;

    Request(const Inputs &inputs, const std::vector<std::string> &outputs) {
      for (const auto &[name, value] : inputs) {
        input_names.push_back(name.c_str());
        values.push_back(value != nullptr ? value->get() : nullptr);
      }
      for (const std::string &name : outputs) output_names.push_back(name.c_str());
    }
  };

  static std::vector<Value> own(rukh_value *const *values, std::size_t count) {
    std::vector<Value> owned;
    for (std::size_t i = 0; i < count; i++) owned.emplace_back(values[i]);
    return owned;
  }

  static void finished(void *user, rukh_status status, rukh_value *const *outputs, std::size_t count,
                       rukh_error *error) noexcept {
    std::unique_ptr<Callback> callback(static_cast<Callback *>(user));
    if (status == RUKH_OK) {
      (*callback)(own(outputs, count));
    } else {
      (*callback)(detail::take(status, error));
    }
  }

  template <class Count, class Name, class Type, class Text, class Dims>
  Result<std::vector<Port>> ports(Count count_of, Name name_of, Type type_of, Text text_of,
                                  Dims shape_of) const {
    std::size_t count = 0;
    Result<void> result =
        detail::call([&](rukh_error **error) { return count_of(get(), &count, error); });
    std::vector<Port> ports;
    for (std::size_t i = 0; result && i < count; i++) {
      Port port{};
      const char *name = "";
      std::int64_t rank = 0;
      result = detail::call([&](rukh_error **error) {
        rukh_status status = name_of(get(), i, &name, error);
        if (status == RUKH_OK) status = type_of(get(), i, &port.kind, &port.element, error);
        if (status == RUKH_OK) status = shape_of(get(), i, nullptr, 0, &rank, error);
        if (status != RUKH_OK || rank < 0) return status;
        port.shape.resize(static_cast<std::size_t>(rank));
        return shape_of(get(), i, port.shape.data(), port.shape.size(), nullptr, error);
      });
      if (!result) break;
      Result<std::string> type = detail::text(
          [&](char *buf, std::size_t cap, std::size_t *needed, rukh_error **error) {
            return text_of(get(), i, buf, cap, needed, error);
          });
      if (!type) return type.error();
      port.name = name;
      port.type = type.value();
      port.rank_known = rank >= 0;
      ports.push_back(std::move(port));
    }
    if (!result) return result.error();
    return ports;
  }
};

}  // namespace rukh

#include <rukh/binding.hpp>

#endif  // RUKH_HPP
