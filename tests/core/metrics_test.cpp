#include "core/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "api/exposition.h"

namespace watchdog::monitor {
namespace {

using namespace std::chrono_literals;

TEST(Exposition, is_text_that_prometheus_reads) {
  Exposition out;
  out.family("a_total", "counter", "Of a.").sample(std::int64_t{7});
  out.family("b", "gauge", "Of b.").sample(0.25, {{"x", "1"}, {"y", "2"}});
  out.sample(std::int64_t{-3}, {{"x", ""}}, "_sum");
  EXPECT_EQ(out.finish(),
            "# HELP a_total Of a.\n# TYPE a_total counter\na_total 7\n"
            "# HELP b Of b.\n# TYPE b gauge\nb{x=\"1\",y=\"2\"} 0.25\nb_sum{x=\"\"} -3\n");
}

struct Escaped {
  const char* text;
  const char* help;
  const char* label;
};
class Escapes : public testing::TestWithParam<Escaped> {};
TEST_P(Escapes, keep_a_text_on_its_line_and_in_its_quotes) {
  Exposition out;
  out.family("m", "gauge", GetParam().text).sample(std::int64_t{1}, {{"l", GetParam().text}});
  EXPECT_EQ(out.finish(), std::string("# HELP m ") + GetParam().help + "\n# TYPE m gauge\nm{l=\"" +
                              GetParam().label + "\"} 1\n");
}
INSTANTIATE_TEST_SUITE_P(All, Escapes,
                         testing::Values(Escaped{"plain", "plain", "plain"},
                                         Escaped{"a\nb", "a\\nb", "a\\nb"},
                                         Escaped{"a\\b", "a\\\\b", "a\\\\b"},
                                         Escaped{"a\"b", "a\"b", "a\\\"b"},
                                         Escaped{"ä}{=,", "ä}{=,", "ä}{=,"}));

struct Number {
  double value;
  const char* text;
};
class Numbers : public testing::TestWithParam<Number> {};
TEST_P(Numbers, are_written_as_the_format_has_them) {
  Exposition out;
  out.sample(GetParam().value);
  EXPECT_EQ(out.finish(), std::string(" ") + GetParam().text + "\n");
}
INSTANTIATE_TEST_SUITE_P(All, Numbers,
                         testing::Values(Number{0, "0"}, Number{0.005, "0.005"}, Number{2.5, "2.5"},
                                         Number{1'795'000'000.125, "1795000000.125"},
                                         Number{std::nan(""), "NaN"},
                                         Number{std::numeric_limits<double>::infinity(), "+Inf"},
                                         Number{-std::numeric_limits<double>::infinity(), "-Inf"}));

TEST(Histogram, counts_what_took_as_long_as_a_bound_below_it) {
  Histogram histogram;
  histogram.observe(500us);
  histogram.observe(1ms);
  histogram.observe(1001us);
  histogram.observe(5s);
  histogram.observe(1h);
  EXPECT_EQ(histogram.in_bucket(0), 2);
  EXPECT_EQ(histogram.in_bucket(1), 1);
  EXPECT_EQ(histogram.in_bucket(Histogram::bounds.size() - 1), 1);
  EXPECT_EQ(histogram.in_bucket(Histogram::bounds.size()), 1);
  EXPECT_NEAR(histogram.sum_seconds(), 3'605.0025, 0.001);
}

TEST(RouteGroups, are_chosen_by_the_path_whatever_it_contains) {
  const std::pair<const char*, RouteGroup> paths[] = {
      {"/", RouteGroup::page},
      {"/api/autonomous/progress/s?x=/stream", RouteGroup::progress},
      {"/api/autonomous/sessions", RouteGroup::sessions},
      {"/api/autonomous/sessions/s/events?limit=3", RouteGroup::events},
      {"/api/autonomous/sessions/s/stream", RouteGroup::streams},
      {"/api/autonomous/stream", RouteGroup::streams},
      {"/api/autonomous/check-status/c", RouteGroup::checks},
      {"/api/turns/t/abort", RouteGroup::turns},
      {"/api/alerts/1/snooze", RouteGroup::alerts},
      {"/api/login", RouteGroup::access},
      {"/healthz", RouteGroup::health},
      {"/metrics", RouteGroup::metrics},
      {"", RouteGroup::page},
      {"%%%", RouteGroup::page}};
  for (const auto& [path, group] : paths)
    EXPECT_EQ(name_of(group_of(path)), name_of(group)) << path;
}

TEST(Metrics, count_requests_by_group_and_class_and_odd_ones_too) {
  Metrics metrics;
  for (const int status : {200, 204, 404, 503, 0, 999})
    metrics.count_request(RouteGroup::page, status);
  const auto& page = metrics.requests[static_cast<std::size_t>(RouteGroup::page)];
  EXPECT_EQ(page[StatusClass::success].count(), 2);
  EXPECT_EQ(page[StatusClass::client].count(), 1);
  EXPECT_EQ(page[StatusClass::server].count(), 2);
  EXPECT_EQ(page[StatusClass::informational].count(), 1);
}

}  // namespace
}  // namespace watchdog::monitor
