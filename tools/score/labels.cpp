#include "score/labels.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// Hands each line's object to `visit`, which returns what is wrong with it, or nothing.
template <class Visit>
Result<void> each_object(const std::filesystem::path& file, const Visit& visit) {
  std::error_code trouble;
  if (std::filesystem::is_directory(file, trouble)) {
    return Error{ErrorCode::not_found, file.string() + " is a directory, a file is needed"};
  }
  std::ifstream stream(file);
  if (!stream) return Error{ErrorCode::not_found, file.string() + ": " + std::strerror(errno)};
  std::string text;
  for (int line = 1; std::getline(stream, text); ++line) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto object = json::parse(text, nullptr, false);
    auto wrong = object.is_object()
                     ? visit(object, line)
                     : std::optional(Error{ErrorCode::malformed, "the line is not a JSON object"});
    if (!wrong) continue;
    wrong->message = file.string() + ":" + std::to_string(line) + ": " + wrong->message;
    wrong->line = line;
    return *wrong;
  }
  return {};
}

/// Reads fields of one object and keeps the first mistake. `null` counts as absent.
class Reader {
 public:
  explicit Reader(const json& object) : object_(object) {}

  [[nodiscard]] std::optional<std::string> text(const char* name) {
    const auto* value = find(name, &json::is_string, "a string");
    return value != nullptr ? std::optional(value->get<std::string>()) : std::nullopt;
  }
  [[nodiscard]] std::optional<bool> flag(const char* name) {
    const auto* value = find(name, &json::is_boolean, "true, false or null");
    return value != nullptr ? std::optional(value->get<bool>()) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::int64_t> integer(const char* name) {
    const auto* value = find(name, &json::is_number_integer, "an integer");
    return value != nullptr ? std::optional(value->get<std::int64_t>()) : std::nullopt;
  }
  template <class T>
  [[nodiscard]] T needed(const char* name, std::optional<T> value) {
    if (!value) fail(std::string(name) + " is missing");
    return value.value_or(T{});
  }
  void fail(std::string what) {
    if (!error_) error_ = Error{ErrorCode::malformed, std::move(what)};
  }
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

 private:
  const json* find(const char* name, bool (json::*is)() const noexcept, const char* wanted) {
    const auto found = object_.find(name);
    if (found == object_.end() || found->is_null()) return nullptr;
    if (((*found).*is)()) return &*found;
    fail(std::string(name) + " must be " + wanted);
    return nullptr;
  }

  const json& object_;
  std::optional<Error> error_;
};

}  // namespace

Result<Labels> read_labels(const std::filesystem::path& index) {
  Labels labels;
  std::map<std::string, int> lines;
  auto read = each_object(index, [&](const json& object, int line) -> std::optional<Error> {
    Reader reader(object);
    Label label;
    label.id = reader.needed("id", reader.text("id"));
    label.source = reader.needed("source", reader.text("source"));
    label.loops = reader.flag("label_loop");
    const auto word = reader.text("outcome").value_or("unknown");
    const auto outcome = named<RunOutcome>(word);
    if (!outcome) {
      reader.fail("outcome is \"" + word + "\"; it must be one of unknown success failure");
    }
    label.outcome = outcome.value_or(RunOutcome::unknown);
    label.task_key = reader.text("task_key").value_or("");
    label.agent = reader.text("agent").value_or("");
    label.split = reader.text("split").value_or("");
    label.overlaps_whowhen = reader.flag("overlaps_whowhen").value_or(false);
    if (reader.error()) return reader.error();
    const auto [first, is_new] = lines.emplace(label.id, line);
    if (!is_new) {
      return Error{ErrorCode::conflict,
                   label.id + " stands in line " + std::to_string(first->second) + " already"};
    }
    auto id = label.id;
    labels.emplace(std::move(id), std::move(label));
    return {};
  });
  if (!read) return read.error();
  return labels;
}

Result<StepLabels> read_step_labels(const std::filesystem::path& steps) {
  StepLabels labels;
  auto read = each_object(steps, [&](const json& object, int) -> std::optional<Error> {
    Reader reader(object);
    const auto id = reader.needed("id", reader.text("id"));
    const auto seq = reader.needed("seq", reader.integer("seq"));
    const auto word = reader.needed("label", reader.text("label"));
    const auto relation = reader.text("rel");
    if (reader.error()) return reader.error();
    if (relation == "action_action") {
      labels[id].push_back({.seq = seq, .repetition = word == "Repetition"});
    }
    return {};
  });
  if (!read) return read.error();
  return labels;
}

std::string label_id(const std::filesystem::path& trace) {
  const auto whole = std::filesystem::absolute(trace).lexically_normal();
  return (whole.parent_path().filename() / whole.stem()).string();
}

}  // namespace watchdog::monitor
