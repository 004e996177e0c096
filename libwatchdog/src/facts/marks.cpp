#include <cstring>

#include "watchdog/report.h"

namespace watchdog {
namespace {

/// Of the bytes below: form, flags, identity, count and entries of fields, of shingles; last the
/// exit code, further flags and a plan's items, where there are such. Numbers as this machine has
/// them: a store does not move between byte orders.
constexpr char form = 1;

enum Flag : unsigned {
  informative = 1,
  malformed = 2,
  unreachable = 4,
  exited = 8,
  text_repeats_shift = 4,  // two bits
  printed = 64,
  worded = 128
};

/// Flags of a last byte. It is there where `has_later` is set in the count of shingles.
enum LaterFlag : unsigned { waits = 1, reads_only = 2, promises = 4, has_plan = 8 };
constexpr unsigned has_later = 128;
static_assert(Marks::shingles_max < has_later);

template <class Number>
void put(std::string& bytes, Number number) {
  char raw[sizeof number];
  std::memcpy(raw, &number, sizeof number);
  bytes.append(raw, sizeof raw);
}

template <class Number>
bool read_number(std::string_view& bytes, Number& number) {
  if (bytes.size() < sizeof number) return false;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes.remove_prefix(sizeof number);
  return true;
}

}  // namespace

std::string encoded(const Marks& marks) {
  std::string bytes;
  bytes.reserve(20 + 13 * marks.fields.size() + 4 * marks.shingles.size());
  bytes += form;
  const unsigned flags =
      (marks.informative ? informative : 0U) | (marks.malformed ? malformed : 0U) |
      (marks.unreachable ? unreachable : 0U) | (marks.exit_code != 0 ? exited : 0U) |
      (marks.printed ? printed : 0U) | (marks.worded ? worded : 0U) |
      static_cast<unsigned>(marks.text_repeats) << text_repeats_shift;
  put(bytes, static_cast<std::uint8_t>(flags));
  put(bytes, marks.identity);
  put(bytes, marks.exact);
  put(bytes, static_cast<std::uint8_t>(marks.fields.size()));
  for (const auto& field : marks.fields) {
    put(bytes, field.name);
    put(bytes, field.value);
    put(bytes, static_cast<std::uint8_t>(field.atomic));
  }
  const unsigned later = (marks.waits ? waits : 0U) | (marks.reads_only ? reads_only : 0U) |
                         (marks.promises ? promises : 0U) |
                         (marks.plan != PlanItems{} ? has_plan : 0U);
  put(bytes, static_cast<std::uint8_t>(marks.shingles.size() | (later != 0 ? has_later : 0U)));
  for (const auto shingle : marks.shingles) put(bytes, shingle);
  if (marks.exit_code != 0) put(bytes, marks.exit_code);
  if (later != 0) put(bytes, static_cast<std::uint8_t>(later));
  if (marks.plan != PlanItems{}) {
    put(bytes, marks.plan.open);
    put(bytes, marks.plan.all);
  }
  return bytes;
}

std::optional<Marks> decoded_marks(std::string_view bytes) {
  if (bytes.empty() || bytes.front() != form) return std::nullopt;
  bytes.remove_prefix(1);
  Marks marks;
  std::uint8_t flags = 0;
  std::uint8_t count = 0;
  if (!read_number(bytes, flags) || !read_number(bytes, marks.identity) ||
      !read_number(bytes, marks.exact) || !read_number(bytes, count)) {
    return std::nullopt;
  }
  marks.informative = (flags & informative) != 0;
  marks.malformed = (flags & malformed) != 0;
  marks.unreachable = (flags & unreachable) != 0;
  marks.printed = (flags & printed) != 0;
  marks.worded = (flags & worded) != 0;
  marks.text_repeats = static_cast<std::uint8_t>(flags >> text_repeats_shift & 3U);
  if (count > Marks::fields_max) return std::nullopt;
  marks.fields.resize(count);
  for (auto& field : marks.fields) {
    std::uint8_t atomic = 0;
    if (!read_number(bytes, field.name) || !read_number(bytes, field.value) ||
        !read_number(bytes, atomic)) {
      return std::nullopt;
    }
    field.atomic = atomic != 0;
  }
  if (!read_number(bytes, count)) return std::nullopt;
  const bool later_follows = (count & has_later) != 0;
  count &= has_later - 1;
  if (count > Marks::shingles_max) return std::nullopt;
  marks.shingles.resize(count);
  for (auto& shingle : marks.shingles) {
    if (!read_number(bytes, shingle)) return std::nullopt;
  }
  if ((flags & exited) != 0 && !read_number(bytes, marks.exit_code)) return std::nullopt;
  std::uint8_t later = 0;
  if (later_follows && !read_number(bytes, later)) return std::nullopt;
  marks.waits = (later & waits) != 0;
  marks.reads_only = (later & reads_only) != 0;
  marks.promises = (later & promises) != 0;
  const bool plan_follows = (later & has_plan) != 0;
  if (plan_follows && (!read_number(bytes, marks.plan.open) || !read_number(bytes, marks.plan.all)))
    return std::nullopt;
  return marks;
}

}  // namespace watchdog
