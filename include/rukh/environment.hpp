// Environments: threads, the log, devices, providers; for rukh.hpp.

#ifndef RUKH_ENVIRONMENT_HPP
#define RUKH_ENVIRONMENT_HPP

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rukh/device.hpp>
#include <rukh/operator.hpp>

namespace rukh {

/// A message of the log, while the function that receives it runs.
class LogRecord {
 public:
  explicit LogRecord(const rukh_log_record *record) noexcept : record_(record) {}

  rukh_log_level level() const noexcept {
    rukh_log_level level = RUKH_LOG_ERROR;
    return rukh_log_record_level(record_, &level, nullptr) == RUKH_OK ? level : RUKH_LOG_ERROR;
  }
  std::string_view message() const noexcept { return text(RUKH_LOG_TEXT_MESSAGE); }
  /// What it is about, such as "session" or "run".
  std::string_view category() const noexcept { return text(RUKH_LOG_TEXT_CATEGORY); }
  /// Whose session, which run, which node it is about; empty where there is none.
  std::string_view session() const noexcept { return text(RUKH_LOG_TEXT_SESSION); }
  std::string_view run() const noexcept { return text(RUKH_LOG_TEXT_RUN); }
  std::string_view node() const noexcept { return text(RUKH_LOG_TEXT_NODE); }
  /// Where in the library's source it was written.
  std::string_view location() const noexcept { return text(RUKH_LOG_TEXT_LOCATION); }

 private:
  std::string_view text(rukh_log_text which) const noexcept {
    const char *text = "";
    return rukh_log_record_text(record_, which, &text, nullptr) == RUKH_OK ? text : "";
  }

  const rukh_log_record *record_;
};

/// Receives log messages, from any thread.
using LogCallback = std::function<void(const LogRecord &)>;

/// The same for who needs no more than level and text.
using Log = std::function<void(rukh_log_level, std::string_view)>;

/// Runs a loop: calls the function that it is given with each number below the first argument, on any threads, and returns
/// when every call has returned.
using ParallelFor = std::function<void(std::size_t, const std::function<void(std::size_t)> &)>;

/// The names of the providers that this build has.
inline Result<std::vector<std::string>> providers() { return detail::texts_from(rukh_provider_name); }
/// How many these are.
inline Result<std::size_t> provider_count() { return detail::get_from<std::size_t>(rukh_provider_count); }

/// What a report about a defect needs: versions, devices, libraries that were tried.
inline Result<std::string> report() { return detail::text_from(rukh_report); }

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
  /// Sets who receives messages of a level and above. The function must not throw.
  Result<void> set_log_callback(rukh_log_level level, LogCallback callback) {
    auto *user = new LogCallback(std::move(callback));
    return detail::call([&](rukh_error **error) {
      return rukh_environment_options_set_log_callback(get(), level, &EnvironmentOptions::write, user,
                                                       &EnvironmentOptions::release_log, error);
    });
  }
  /// The same with level and text alone.
  Result<void> set_log(rukh_log_level level, Log log) {
    return set_log_callback(level, [log = std::move(log)](const LogRecord &record) {
      log(record.level(), record.message());
    });
  }
  Result<std::string> option(const std::string &key) const {
    return detail::text_from(rukh_environment_options_get, get(), key.c_str());
  }
  Result<std::vector<std::string>> keys() const {
    return detail::texts_from(rukh_environment_options_key, get());
  }
  /// Lets the library compute on the caller's threads, so many with the one that calls.
  Result<void> set_parallel_for(std::size_t threads, ParallelFor run) {
    auto *user = new ParallelFor(std::move(run));
    return detail::call([&](rukh_error **error) {
      return rukh_environment_options_set_parallel_for(get(), &EnvironmentOptions::run_loop, threads, user,
                                                       &EnvironmentOptions::release_run, error);
    });
  }

 private:
  static void write(const rukh_log_record *record, void *user) noexcept {
    (*static_cast<LogCallback *>(user))(LogRecord(record));
  }
  static void release_log(void *user) noexcept { delete static_cast<LogCallback *>(user); }
  static void run_loop(std::size_t count, rukh_parallel_body body, void *argument, void *user) noexcept {
    (*static_cast<ParallelFor *>(user))(count, [body, argument](std::size_t index) { body(index, argument); });
  }
  static void release_run(void *user) noexcept { delete static_cast<ParallelFor *>(user); }
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

  /// For sessions that are opened from now on, all operators of a shared library.
  Result<void> load_operators(const std::string &path) {
    return detail::call_with(rukh_environment_load_operators, get(), path.c_str());
  }
  /// Changes from which level on messages are received.
  Result<void> set_log_level(rukh_log_level level) {
    return detail::call_with(rukh_environment_set_log_level, get(), level);
  }
  /// Threads that compute for one run, the calling one included.
  Result<std::size_t> thread_count() const {
    return detail::get_from<std::size_t>(rukh_environment_thread_count, get());
  }
  /// Why a provider cannot be used here; empty where it can.
  Result<std::string> provider_reason(const std::string &provider) const {
    return detail::text_from(rukh_environment_provider_reason, get(), provider.c_str());
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

}  // namespace rukh

#endif  // RUKH_ENVIRONMENT_HPP
