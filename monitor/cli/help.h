/// \file
/// How `--help` looks: lines that fit into 80 columns, one noun for each value.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace watchdog::monitor {

/// The text with line feeds instead of blanks where a line would be wider than `width`. Lines that
/// begin with blanks keep them, and so do their continuations, two more. Pure.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width);

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace watchdog::monitor
