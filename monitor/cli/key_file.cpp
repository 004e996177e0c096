#include "cli/key_file.h"

#include "files/regular_file.h"

namespace watchdog::monitor {

Result<std::string> key_from(const std::filesystem::path& path, const std::string& field) {
  constexpr std::size_t bytes_max = 4'096;
  constexpr std::string_view blanks = " \t\r\n";
  if (path.empty()) return std::string();
  auto text = read_regular_file(path, bytes_max, Readers::owner);
  if (!text) return Error{ErrorCode::invalid, path.string() + " " + text.error().message, field};
  const auto begin = text->find_first_not_of(blanks);
  if (begin == std::string::npos)
    return Error{ErrorCode::invalid, path.string() + " has no key", field};
  return text->substr(begin, text->find_last_not_of(blanks) - begin + 1);
}

}  // namespace watchdog::monitor
