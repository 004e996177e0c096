/// \file
/// Single members of a JSON object, found without reading the rest of it into memory.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace watchdog::monitor {

/// Puts the text of each named member of the outermost object into `found`, in the order of
/// `names`; empty: the object has none. Of two members with one name the last counts, as for most
/// readers. Escapes in names are not understood. Returns false if the text is not an object, or
/// breaks off; then nothing is found. Takes one pass over the text, and no memory. REQUIRES:
/// `found` has the size of `names`.
bool find_members(std::string_view object, std::span<const std::string_view> names,
                  std::span<std::string_view> found) noexcept;

/// Finds the members that are complete in the beginning of such a text. Returns false if it does
/// not begin as an object. Otherwise like find_members.
bool find_first_members(std::string_view beginning, std::span<const std::string_view> names,
                        std::span<std::string_view> found) noexcept;

/// One of them; empty: none.
[[nodiscard]] std::string_view member_of(std::string_view object, std::string_view name) noexcept;

/// Returns the text of a member's value; nothing: it is of another type.
[[nodiscard]] std::optional<std::string> string_in(std::string_view value);
[[nodiscard]] std::optional<bool> flag_in(std::string_view value) noexcept;
[[nodiscard]] std::optional<std::int64_t> count_in(std::string_view value) noexcept;
[[nodiscard]] std::optional<double> number_in(std::string_view value) noexcept;

/// The object's text with a member added in front, which it must not have. REQUIRES: find_members
/// is true for it.
[[nodiscard]] std::string with_member(std::string_view object, std::string_view member);

}  // namespace watchdog::monitor
