// What a model learns from a monitor's own sessions: which agents it says something about, which
// ranges of calls it gives, and why it hides the rest.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "predict/estimate.h"
#include "predict/training.h"
#include "watchdog/repetition.h"

namespace watchdog {
namespace {

constexpr unsigned own_seed = 23;

/// A run of `calls` calls whose stages all have the same features.
Example own_run(const std::string& agent, int number, ExampleEnd end, std::int64_t calls,
                const Features& features) {
  Example example{
      .agent = agent, .task = agent + std::to_string(number), .end = end, .calls = calls};
  for (std::size_t at = 0; at < stage_count; ++at)
    if (calls >= stage_calls[at]) example.stages[at] = features;
  return example;
}

/// Runs of an agent of which a third does not finish. `telling`: the feature that says so, mostly.
std::vector<Example> own_runs(const std::string& agent, int count, std::optional<Feature> telling) {
  std::mt19937 random(own_seed);
  std::vector<Example> examples;
  for (int i = 0; i < count; ++i) {
    const bool fails = random() % 3 == 0;
    Features features{};
    for (auto& value : features) value = static_cast<double>(random() % 100) / 100;
    if (telling) features[static_cast<std::size_t>(*telling)] += fails ? 1 : 0;
    examples.push_back(own_run(agent, i, fails ? ExampleEnd::unfinished : ExampleEnd::finished,
                               10 + static_cast<std::int64_t>(random() % 20), features));
  }
  return examples;
}

Features with(Feature feature, double value) {
  Features features{};
  features.fill(0.5);
  features[static_cast<std::size_t>(feature)] = value;
  return features;
}

TEST(OwnSessions, are_only_predicted_where_it_beats_the_agents_base_rate) {
  std::cout << "seed " << own_seed << std::endl;
  auto examples = own_runs("clear", 300, Feature::failures);
  const auto add = [&](const std::vector<Example>& more) {
    examples.insert(examples.end(), more.begin(), more.end());
  };
  add(own_runs("chance", 300, {}));
  add(own_runs("rare", 49, Feature::failures));
  add(own_runs("few", 80, Feature::failures));
  for (int i = 0; i < 60; ++i)
    examples.push_back(own_run("good", i, ExampleEnd::finished, 10, with(Feature::failures, 0)));
  const auto model = train(examples, nullptr, {.simplest = true});
  constexpr std::size_t eight = 1;
  const auto worth = [&](const std::string& agent) {
    return stage_agent(model.stages[eight], agent)->worth;
  };
  EXPECT_EQ(worth("clear"), Worth::shown);
  EXPECT_EQ(worth("chance"), Worth::at_chance);
  EXPECT_EQ(worth("rare"), Worth::few_sessions);
  EXPECT_EQ(worth("few"), Worth::one_group);
  EXPECT_EQ(worth("good"), Worth::one_outcome);
  EXPECT_EQ(stage_agent(model.stages[eight], "unknown"), nullptr);
  EXPECT_EQ(stage_agent(model.stages[eight], ""), nullptr);

  const auto bad = shown_prediction(model, eight, with(Feature::failures, 1.6), "clear");
  const auto good = shown_prediction(model, eight, with(Feature::failures, 0.2), "clear");
  ASSERT_TRUE(bad && good);
  EXPECT_GT(bad->share(), 0.8);
  EXPECT_LT(good->share(), 0.2);
  EXPECT_GE(std::min(bad->runs, good->runs), comparable_min);
  EXPECT_LE(bad->runs + good->runs, 300) << "comparable are sessions of the same agent";
  for (const auto* agent : {"chance", "rare", "few", "good", "unknown", ""})
    EXPECT_FALSE(shown_prediction(model, eight, with(Feature::failures, 1.6), agent)) << agent;
  EXPECT_TRUE(has_estimates(model, "clear"));
  EXPECT_FALSE(has_estimates(model, "unknown"));

  // Every reason to hide is a sentence of its own.
  EXPECT_NE(in_words(*stage_agent(model.stages[eight], "chance")).find("base rate"),
            std::string::npos);
  EXPECT_NE(in_words(*stage_agent(model.stages[eight], "rare")).find("50 are needed"),
            std::string::npos);
  EXPECT_EQ(to_json(*model_from_json(to_json(model))), to_json(model));
}

TEST(OwnSessions, are_predicted_by_the_repetition_alone_where_more_is_not_better) {
  constexpr std::size_t eight = 1;
  const auto simple =
      train(own_runs("a", 300, Feature::repetition), nullptr, {.simplest = true}).stages[eight];
  EXPECT_FALSE(simple.all_features);
  EXPECT_EQ(stage_agent(simple, "a")->worth, Worth::shown);
  for (std::size_t at = 1; at < feature_count; ++at) EXPECT_EQ(simple.weights[at], 0);
  const auto whole =
      train(own_runs("a", 300, Feature::similar_calls), nullptr, {.simplest = true}).stages[eight];
  EXPECT_TRUE(whole.all_features);
  EXPECT_EQ(stage_agent(whole, "a")->worth, Worth::shown);
}

TEST(OwnSessions, start_from_the_prior) {
  const auto few = own_runs("a", 25, {});
  PredictionModel prior = train(own_runs("b", 300, Feature::failures));
  const auto at = static_cast<std::size_t>(Feature::failures);
  const auto with_prior = train(few, &prior);
  const auto without = train(few);
  EXPECT_GT(with_prior.stages[0].weights[at], without.stages[0].weights[at] + 0.3);
  EXPECT_EQ(with_prior.stages[0].mean, prior.stages[0].mean);
}

TEST(OwnSessions, the_shipped_prior_is_that_of_the_recorded_runs) {
  const auto text_of = [](const std::string& path) {
    std::ifstream file(std::string(PROJECT_ROOT) + path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
  const auto shipped = model_from_json(text_of("/libwatchdog/src/predict/prediction-prior.json"));
  ASSERT_TRUE(shipped) << shipped.error().message;
  const auto examples = examples_from_json_lines(text_of("/tests/data/predict/examples.jsonl"));
  ASSERT_TRUE(examples);
  const auto made = as_prior(train(*examples));
  EXPECT_EQ(shipped->trained_on, made.trained_on) << "run scripts/prediction-prior";
  for (std::size_t at = 0; at < stage_count; ++at) {
    EXPECT_EQ(shipped->stages[at].runs, made.stages[at].runs);
    EXPECT_TRUE(shipped->stages[at].agents.empty());
    for (std::size_t i = 0; i < feature_count; ++i) {
      EXPECT_NEAR(shipped->stages[at].weights[i], made.stages[at].weights[i], 1e-4);
      EXPECT_NEAR(shipped->stages[at].mean[i], made.stages[at].mean[i], 1e-4);
    }
  }
}

AgentLengths lengths_with(std::vector<LengthStep> steps) {
  AgentLengths lengths{.name = "a", .steps = std::move(steps)};
  lengths.coverage.fill({.runs = 100, .inside = 80});
  return lengths;
}

TEST(CallsLeft, are_the_ranks_of_similar_runs) {
  std::vector<Example> examples;
  for (int i = 0; i < 100; ++i)
    examples.push_back(own_run("a", i, ExampleEnd::finished, i + 1, {}));
  const auto lengths = lengths_of(examples).front();
  const auto begin = range_left(lengths, 0);
  ASSERT_TRUE(begin);
  EXPECT_EQ(begin->low, 10);
  EXPECT_EQ(begin->high, 91);
  EXPECT_EQ(begin->runs, 100);
  const auto later = range_left(lengths, 41);
  ASSERT_TRUE(later);
  EXPECT_EQ(later->runs, 60) << "those that are at least as long";
  EXPECT_EQ(later->low, 5);
  EXPECT_EQ(later->high, 54);
  EXPECT_FALSE(range_left(lengths, 52)) << "49 runs";
  EXPECT_FALSE(range_left(lengths, 1'000));
}

TEST(CallsLeft, count_a_cancelled_run_until_its_cancellation) {
  std::vector<Example> examples;
  for (int i = 0; i < 100; ++i)
    examples.push_back(
        own_run("a", i, i < 20 ? ExampleEnd::cut : ExampleEnd::finished, i < 20 ? 5 : 20, {}));
  const auto range = range_left(lengths_of(examples).front(), 4);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->low, 16) << "none of those that ended was shorter than 20";
  EXPECT_EQ(range->high, 16);
  // Too many cancelled runs: nobody knows how long they would have been.
  for (auto& example : examples) example.end = ExampleEnd::cut;
  for (int i = 0; i < 40; ++i) examples[static_cast<std::size_t>(i)].end = ExampleEnd::finished;
  EXPECT_FALSE(range_left(lengths_of(examples).front(), 4));
}

TEST(CallsLeft, are_hidden_without_a_good_coverage) {
  PredictionModel model;
  model.lengths = {lengths_with(
      {{.calls = 10, .at_risk = 100, .longer = 0.5}, {.calls = 20, .at_risk = 50, .longer = 0}})};
  const auto shown = shown_calls_left(model, 4, "a");
  ASSERT_TRUE(shown);
  EXPECT_EQ(in_words(*shown), "4 of 5 such sessions needed 6 to 16 more calls (100 seen)");
  EXPECT_FALSE(shown_calls_left(model, 3, "a")) << "before the first stage";
  EXPECT_FALSE(shown_calls_left(model, 4, "b"));
  EXPECT_FALSE(shown_calls_left(model, 4, ""));
  model.lengths[0].coverage[0].inside = 69;
  EXPECT_FALSE(shown_calls_left(model, 4, "a")) << "poor coverage";
  model.lengths[0].coverage[0] = {.runs = 49, .inside = 49};
  EXPECT_FALSE(shown_calls_left(model, 4, "a")) << "measured on too few";
}

TEST(CallsLeft, cover_what_they_promise_on_held_out_runs) {
  std::cout << "seed " << own_seed << std::endl;
  std::mt19937 random(own_seed);
  std::vector<Example> examples;
  for (int i = 0; i < 3'000; ++i)
    examples.push_back(own_run("a", i, ExampleEnd::finished,
                               4 + static_cast<std::int64_t>(random() % 200 + random() % 400), {}));
  const auto lengths = lengths_of(examples).front();
  EXPECT_LE(lengths.steps.size(), model_lengths_max);
  const auto share = static_cast<double>(lengths.coverage[0].inside) /
                     static_cast<double>(lengths.coverage[0].runs);
  EXPECT_EQ(lengths.coverage[0].runs, 3'000);
  EXPECT_GT(share, 0.77);
  EXPECT_LT(share, 0.83);
}

TEST(OwnSessions, a_new_attempt_begins_again) {
  ExampleFold folded;
  Seq seq = 0;
  const auto fold = [&](ReportKind kind) {
    Event event{.seq = ++seq, .session = 1, .tick = Instant{Millis{1'000}}};
    event.report.kind = kind;
    event.report.name = "shell";
    event.report.content = "{\"command\": \"make test\"}";
    if (kind == ReportKind::end) {
      event.report.content.clear();
      event.report.detail = Outcome{.kind = OutcomeKind::failed};
    }
    mark(event.report);
    folded.fold(event);
  };
  for (int i = 0; i < 5; ++i) {
    fold(ReportKind::tool_call);
    fold(ReportKind::error);
  }
  EXPECT_TRUE(folded.example().stages[0]);
  fold(ReportKind::end);
  fold(ReportKind::start);
  fold(ReportKind::tool_call);
  fold(ReportKind::tool_result);
  const auto example = folded.example();
  EXPECT_EQ(example.calls, 1);
  EXPECT_FALSE(example.stages[0]);
  EXPECT_EQ((*example.stages[whole_run])[static_cast<std::size_t>(Feature::failures)], 0);
}

}  // namespace
}  // namespace watchdog
