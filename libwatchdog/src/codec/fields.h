/// \file
/// Typed access to the fields of a parsed JSON object, with errors that name the field.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codec/json_bounds.h"
#include "watchdog/report.h"
#include "watchdog/result.h"

namespace watchdog {

/// Parses hostile text: bounded depth, no exception. Errors: `malformed`, with the reason;
/// `exhausted`: it has more values than `values_max`, each of which takes up to 160 bytes besides
/// its text. Empty lists and objects may count twice.
[[nodiscard]] Result<nlohmann::json> parse_json(std::string_view text,
                                                std::size_t values_max = json_values_max);
/// The same for text that must be an object.
[[nodiscard]] Result<nlohmann::json> parse_object(std::string_view text);

/// Reads fields of one object. It keeps the first mistake; later ones do not replace it. So a
/// reader has one line per field, and checks `error()` once at its end. `null` counts as absent.
class Fields {
 public:
  /// REQUIRES: `object` is an object and outlives this.
  explicit Fields(const nlohmann::json& object) : object_(object) {}

  /// The field's value, or nullptr if it is absent or null.
  [[nodiscard]] const nlohmann::json* find(std::string_view name) const;

  /// Returns the names that were asked for so far.
  [[nodiscard]] std::span<const std::string_view> asked() const noexcept {
    return {asked_.data(), asked_count_};
  }
  /// Returns the number of members that were asked for and are there.
  [[nodiscard]] std::size_t members_read() const noexcept { return read_count_; }

  void text(std::string_view name, std::string& into, std::size_t bytes_max);
  void flag(std::string_view name, std::optional<bool>& into);
  void integer(std::string_view name, std::optional<std::int64_t>& into);
  void number(std::string_view name, std::optional<double>& into);
  template <class Enum>
  void choice(std::string_view name, std::optional<Enum>& into) {
    std::string word;
    text(name, word, 64);
    if (word.empty()) return;
    into = named<Enum>(word);
    if (!into) fail(ErrorCode::invalid, name, one_of(Names<Enum>::all, word));
  }

  void fail(ErrorCode code, std::string_view name, std::string what);
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }

 private:
  template <class Words>
  static std::string one_of(const Words& words, std::string_view given) {
    std::string text = "is \"" + std::string(given) + "\"; it must be one of";
    for (const auto word : words) text.append(" ").append(word);
    return text;
  }

  static constexpr std::size_t asked_max = 64;

  const nlohmann::json& object_;
  std::optional<Error> error_;
  mutable std::array<std::string_view, asked_max> asked_;  ///< Literals of the callers.
  mutable std::size_t asked_count_ = 0;
  mutable std::array<const nlohmann::json*, asked_max> read_;
  mutable std::size_t read_count_ = 0;
};

/// `pid` and `host`, and two fields that the trace format and the API spell differently.
[[nodiscard]] ProcessFacts read_process(Fields& fields, std::string_view start_field,
                                        std::string_view boot_field);

}  // namespace watchdog
