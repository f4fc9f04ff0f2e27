// Sessions: opening a model, what it takes and gives, running it; for rukh.hpp.

#ifndef RUKH_SESSION_HPP
#define RUKH_SESSION_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <rukh/environment.hpp>
#include <rukh/options.hpp>
#include <rukh/value.hpp>

namespace rukh {

/// An input or output of a model. A dimension that is not known before it runs is -1.
struct Port {
  std::string name;
  rukh_kind kind;
  rukh_element_type element;
  /// Type and shape for people.
  std::string type;
  bool rank_known;
  Shape shape;
  /// The name or formula of each dimension; empty for one that is known or has none.
  std::vector<std::string> dims;
};

/// Where a node runs, and why there.
struct Placement {
  std::string node, operator_name, provider, reason;
  /// The number of its device among those of the provider.
  std::size_t device_id;
};

/// The versions that a model says of itself.
struct ModelVersion {
  std::int64_t model, ir;
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
                 rukh_session_input_type_text, rukh_session_input_shape, rukh_session_input_dim_name);
  }
  Result<std::vector<Port>> outputs() const {
    return ports(rukh_session_output_count, rukh_session_output_name, rukh_session_output_type,
                 rukh_session_output_type_text, rukh_session_output_shape, rukh_session_output_dim_name);
  }
  /// Initializers that runs may give values for.
  Result<std::vector<Port>> overridable() const {
    return ports(rukh_session_overridable_count, rukh_session_overridable_name, tensor_type,
                 rukh_session_overridable_type_text, rukh_session_overridable_shape,
                 rukh_session_overridable_dim_name);
  }
  Result<std::size_t> input_index(const std::string &name) const {
    return detail::get_from<std::size_t>(rukh_session_input_index, get(), name.c_str());
  }
  Result<std::size_t> output_index(const std::string &name) const {
    return detail::get_from<std::size_t>(rukh_session_output_index, get(), name.c_str());
  }

  /// What the model says of itself: its producer, its graph's name, ...
  Result<std::string> model_text(rukh_model_text which) const {
    return detail::borrowed_from(rukh_session_model_text, get(), which);
  }
  Result<ModelVersion> model_version() const {
    ModelVersion version{};
    Result<void> result =
        detail::call_with(rukh_session_model_version, get(), &version.model, &version.ir);
    if (!result) return result.error();
    return version;
  }
  Result<std::vector<std::pair<std::string, std::string>>> properties() const {
    return detail::pairs_from<std::string, const char *>(rukh_session_property_count, rukh_session_property, get());
  }
  /// The operator sets that the model imports: domain and version.
  Result<std::vector<std::pair<std::string, std::int64_t>>> opsets() const {
    return detail::pairs_from<std::int64_t, std::int64_t>(rukh_session_opset_count, rukh_session_opset, get());
  }
  Result<std::vector<Placement>> placement() const {
    Placements found;
    Result<std::size_t> count = detail::get_from<std::size_t>(rukh_session_placement_count, get());
    if (!count) return count.error();
    found.rows.reserve(count.value());
    Result<void> result = detail::call([&](rukh_error **error) {
      return rukh_session_for_each_placement(get(), &Session::add_placement, &found, error);
    });
    if (!found.result) return found.result.error();
    if (!result) return result.error();
    return std::move(found.rows);
  }
  /// What opening took.
  Result<std::uint64_t> load_counter(rukh_load_counter which) const {
    return detail::get_from<std::uint64_t>(rukh_session_load_counter, get(), which);
  }
  /// The steps of a run and its memory, as JSON.
  Result<std::string> plan() const { return detail::text_from(rukh_session_plan, get()); }

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
    auto *user = new Callback(std::move(callback));
    return detail::call([&](rukh_error **error) {
      return rukh_session_start(get(), options.get(), request.input_names.data(), request.values.data(),
                                inputs.size(), request.output_names.data(), outputs.size(), &Session::finished, user,
                                &Session::release_callback, nullptr, error);
    });
  }

  /// Starts a run whose outputs the completion gives.
  Result<Completion> start(const Inputs &inputs, const std::vector<std::string> &outputs,
                           const RunOptions &options = RunOptions()) const {
    const Request request(inputs, outputs);
    return detail::make<Completion, rukh_completion>([&](rukh_completion **out, rukh_error **error) {
      return rukh_session_start(get(), options.get(), request.input_names.data(), request.values.data(),
                                inputs.size(), request.output_names.data(), outputs.size(), nullptr, nullptr, nullptr,
                                out, error);
    });
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

  /// What was found of placements, or why that ended.
  struct Placements {
    std::vector<Placement> rows;
    Result<void> result;
  };

  static rukh_status add_placement(const rukh_placement *placement, void *user) noexcept {
    auto *found = static_cast<Placements *>(user);
    const char *texts[] = {"", "", "", ""};
    std::size_t device_id = 0;
    found->result = detail::call([&](rukh_error **error) {
      rukh_status status = RUKH_OK;
      for (rukh_placement_fact which = 0; status == RUKH_OK && which < 4; which++) {
        status = rukh_placement_text(placement, which, &texts[which], error);
      }
      rukh_device *made = nullptr;
      if (status == RUKH_OK) status = rukh_placement_device(placement, &made, error);
      const DeviceHandle device(made);
      return status == RUKH_OK ? rukh_device_id(made, &device_id, error) : status;
    });
    if (!found->result) return found->result.error().status;
    found->rows.push_back({texts[0], texts[1], texts[2], texts[3], device_id});
    return RUKH_OK;
  }

  static void finished(const rukh_completion *lent, void *user) noexcept {
    // It is the library's handle: only asked, not owned.
    Completion completion(const_cast<rukh_completion *>(lent));
    (*static_cast<Callback *>(user))(completion.outputs());
    static_cast<void>(completion.release());
  }
  static void release_callback(void *user) noexcept { delete static_cast<Callback *>(user); }

  /// Initializers are tensors; their text says of what.
  static rukh_status tensor_type(const rukh_session *, std::size_t, rukh_kind *kind, rukh_element_type *element,
                                 rukh_error **) {
    *kind = RUKH_KIND_TENSOR;
    *element = RUKH_ELEMENT_UNDEFINED;
    return RUKH_OK;
  }

  template <class Count, class Name, class Type, class Text, class Dims, class DimName>
  Result<std::vector<Port>> ports(Count count_of, Name name_of, Type type_of, Text text_of, Dims shape_of,
                                  DimName dim_name_of) const {
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
        status = shape_of(get(), i, port.shape.data(), port.shape.size(), nullptr, error);
        for (std::size_t axis = 0; status == RUKH_OK && axis < port.shape.size(); axis++) {
          const char *dim = nullptr;
          status = dim_name_of(get(), i, axis, &dim, error);
          port.dims.emplace_back(dim != nullptr ? dim : "");
        }
        return status;
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

/// What tuning did: problems that were measured, and those that no kernel fits.
struct Tuned {
  std::size_t tuned, without;
};

/// Measures the kernels for recorded shapes on a GPU of the options; see rukh_environment_tune.
inline Result<Tuned> tune(const Environment &environment, const SessionOptions &options, const std::string &shapes) {
  Tuned counts{};
  Result<void> result = detail::call_with(rukh_environment_tune, environment.get(), options.get(), shapes.c_str(),
                                          &counts.tuned, &counts.without);
  if (!result) return result.error();
  return counts;
}

}  // namespace rukh

#endif  // RUKH_SESSION_HPP
