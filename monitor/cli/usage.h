/// \file
/// Checks a command line, and describes a refused one: the mistake, the nearest correct word, and
/// the allowed ones.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace watchdog::monitor {

/// True: `--help` lists the words.
enum class Listed : bool { no, yes };

/// Accepts one of the words. `what` is their noun, as in `unknown health "stuk"`.
[[nodiscard]] CLI::Validator one_of(std::string what, std::vector<std::string> words,
                                    Listed listed = Listed::yes);
/// Accepts some of the words, with commas between.
[[nodiscard]] CLI::Validator some_of(std::string what, std::vector<std::string> words);
/// Accepts an integer of this range.
[[nodiscard]] CLI::Validator integer(std::int64_t min, std::int64_t max = INT64_MAX);
/// Accepts a number that is 0 or more.
[[nodiscard]] CLI::Validator amount();
/// Accepts `KEY:VALUE`.
[[nodiscard]] CLI::Validator label();

/// The words as CLI11 is to read them: it takes the word behind `--config=` for the empty value.
[[nodiscard]] std::vector<std::string> words_of(const CLI::App& app, int argc,
                                                const char* const* argv);
/// The option's names, as `-h` and `--help`. Empty for a positional argument.
[[nodiscard]] std::vector<std::string> flags_of(const CLI::Option& option);
/// The option is followed by a value.
[[nodiscard]] bool wants_value(const CLI::Option& option);
/// Returns why the first word is not a command; nothing if it is one, or an option.
[[nodiscard]] std::optional<std::string> command_mistake(const CLI::App& app,
                                                         const std::string& word);
/// Returns why the command line was refused. REQUIRES: `app` has just thrown `error`.
[[nodiscard]] std::string mistake_in(const CLI::App& app, const CLI::ParseError& error);

}  // namespace watchdog::monitor
