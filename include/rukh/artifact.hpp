// Models that are compiled to artifacts; for rukh.hpp.

#ifndef RUKH_ARTIFACT_HPP
#define RUKH_ARTIFACT_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rukh/environment.hpp>
#include <rukh/options.hpp>

namespace rukh {

/// Told of each step of compiling: what it is, how many are done, how many there are. Another status than RUKH_OK ends it.
using Progress = std::function<rukh_status(std::string_view, std::uint64_t, std::uint64_t)>;

class CompileOptions : public detail::Handle<rukh_compile_options, rukh_compile_options_destroy> {
 public:
  using Handle::Handle;

  static Result<CompileOptions> create() {
    return detail::make<CompileOptions, rukh_compile_options>(rukh_compile_options_create);
  }
  Result<void> set(const std::string &key, const std::string &value) {
    return detail::call_with(rukh_compile_options_set, get(), key.c_str(), value.c_str());
  }
  Result<std::string> option(const std::string &key) const {
    return detail::text_from(rukh_compile_options_get, get(), key.c_str());
  }
  Result<std::vector<std::string>> keys() const {
    return detail::texts_from(rukh_compile_options_key, get());
  }
  Result<void> set_progress(Progress progress) {
    auto *user = new Progress(std::move(progress));
    return detail::call([&](rukh_error **error) {
      return rukh_compile_options_set_progress(get(), &CompileOptions::tell, user, &CompileOptions::release_progress,
                                               error);
    });
  }

 private:
  static rukh_status tell(void *user, const char *step, std::uint64_t done, std::uint64_t total) noexcept {
    return (*static_cast<Progress *>(user))(step, done, total);
  }
  static void release_progress(void *user) noexcept { delete static_cast<Progress *>(user); }
};

/// Compiles a model file to the artifact `out`.
inline Result<void> compile_model(const Environment &environment, const std::string &path, const std::string &out,
                                  const CompileOptions &options = CompileOptions(),
                                  const SessionOptions &session_options = SessionOptions()) {
  return detail::call_with(rukh_compile_model, environment.get(), path.c_str(), session_options.get(), options.get(),
                           out.c_str());
}
/// The same from the bytes of a model file.
inline Result<void> compile_model(const Environment &environment, const void *data, std::size_t size,
                                  const std::string &out, const CompileOptions &options = CompileOptions(),
                                  const SessionOptions &session_options = SessionOptions()) {
  return detail::call_with(rukh_compile_model_from_memory, environment.get(), data, size, session_options.get(),
                           options.get(), out.c_str());
}

/// Whether an artifact suits this machine, and why not.
struct Verdict {
  rukh_artifact_verdict verdict;
  std::string reason;
};

class Artifact : public detail::Handle<rukh_artifact, rukh_artifact_destroy> {
 public:
  using Handle::Handle;

  static Result<Artifact> open(const Environment &environment, const std::string &path) {
    return detail::make<Artifact, rukh_artifact>([&](rukh_artifact **out, rukh_error **error) {
      return rukh_artifact_open(environment.get(), path.c_str(), out, error);
    });
  }
  /// What is in it, as JSON.
  Result<std::string> info() const { return detail::text_from(rukh_artifact_info, get()); }
  /// Before a session is made of it with these options.
  Result<Verdict> check(const SessionOptions &options = SessionOptions()) const {
    rukh_artifact_verdict verdict = RUKH_ARTIFACT_UNFIT;
    Result<std::string> reason = detail::text_from(rukh_artifact_check, get(), options.get(), &verdict);
    if (!reason) return reason.error();
    return Verdict{verdict, reason.value()};
  }
};

}  // namespace rukh

#endif  // RUKH_ARTIFACT_HPP
