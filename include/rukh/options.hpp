// Options of sessions and of runs; for rukh.hpp.

#ifndef RUKH_OPTIONS_HPP
#define RUKH_OPTIONS_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <rukh/adapter.hpp>
#include <rukh/operator.hpp>
#include <rukh/value.hpp>

namespace rukh {

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
  /// Another object with the same options, which is not cancelled.
  Result<SessionOptions> clone() const {
    return detail::make<SessionOptions, rukh_session_options>(
        [&](rukh_session_options **out, rukh_error **error) {
          return rukh_session_options_clone(get(), out, error);
        });
  }
  Result<std::vector<std::string>> keys() const {
    return detail::texts_from(rukh_session_options_key, get());
  }
  Result<void> set_load(rukh_load_mode mode) {
    return detail::call_with(rukh_session_options_set_load, get(), mode);
  }
  Result<void> set_optimization(rukh_optimization optimization) {
    return detail::call_with(rukh_session_options_set_optimization, get(), optimization);
  }
  Result<void> set_fallback(rukh_fallback fallback) {
    return detail::call_with(rukh_session_options_set_fallback, get(), fallback);
  }
  Result<void> set_profiling(bool on) {
    return detail::call_with(rukh_session_options_set_profiling, get(), static_cast<std::int32_t>(on));
  }
  /// Threads of a pool of the session's own; 0 for the environment's.
  Result<void> set_threads(std::size_t threads) {
    return detail::call_with(rukh_session_options_set_threads, get(), threads);
  }
  /// Functions that give and take the provider's device memory, in place of its arena.
  Result<void> set_external_allocator(rukh_device_alloc alloc, rukh_device_free release_memory,
                                      rukh_device_empty_cache empty_cache, void *user) {
    return detail::call_with(rukh_session_options_set_external_allocator, get(), alloc, release_memory,
                             empty_cache, user);
  }
  /// Ends openings that use these options, from any thread.
  Result<void> cancel() { return detail::call_with(rukh_session_options_cancel, get()); }
  Result<void> reset() { return detail::call_with(rukh_session_options_reset, get()); }

  Result<std::size_t> provider_count() const {
    return detail::get_from<std::size_t>(rukh_session_options_provider_count, get());
  }
  Result<std::string> provider_name(std::size_t index) const {
    return detail::text_from(rukh_session_options_provider_name, get(), index);
  }
  Result<std::vector<std::string>> provider_keys(std::size_t index) const {
    return detail::texts_from(rukh_session_options_provider_key, get(), index);
  }
  Result<std::string> provider_option(std::size_t index, const std::string &key) const {
    return detail::text_from(rukh_session_options_provider_get, get(), index, key.c_str());
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
  /// All operators of a shared library.
  Result<void> load_operators(const std::string &path) {
    return detail::call_with(rukh_session_options_load_operators, get(), path.c_str());
  }
  /// An adapter's tensors in place of initializers of the model, for good.
  Result<void> add_adapter(const Adapter &adapter) {
    return detail::call_with(rukh_session_options_add_adapter, get(), adapter.get());
  }
  /// A tensor in place of an initializer of the model.
  Result<void> add_initializer(const std::string &name, const Value &value) {
    return detail::call([&](rukh_error **error) {
      return rukh_session_options_add_initializer(get(), name.c_str(), value.get(), error);
    });
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
  Result<std::string> option(const std::string &key) const {
    return detail::text_from(rukh_run_options_get, get(), key.c_str());
  }
  Result<std::vector<std::string>> keys() const { return detail::texts_from(rukh_run_options_key, get()); }
  /// What runs are not given comes from the adapter, where it has it; the last one added counts.
  Result<void> add_adapter(const Adapter &adapter) {
    return detail::call_with(rukh_run_options_add_adapter, get(), adapter.get());
  }
  /// Ends the runs that use these options, from any thread.
  Result<void> cancel() {
    return detail::call([&](rukh_error **error) { return rukh_run_options_cancel(get(), error); });
  }
  Result<void> reset() {
    return detail::call([&](rukh_error **error) { return rukh_run_options_reset(get(), error); });
  }
};

}  // namespace rukh

#endif  // RUKH_OPTIONS_HPP
