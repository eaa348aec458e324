"""CloudWatch of the local AWS: metrics read by statistic and by metric math, alarms evaluated, dashboards checked.

MiniStack keeps metrics, alarms, dashboards and tags, and serves requests for tags and dashboards. Its evaluation is
off: it ignores dimensions, metric math and TreatMissingData. What alarms mean is taken from the CloudWatch user guide
(``AlarmThatSendsEmail``, ``using-metric-math``) and API reference; where they are silent the docstring states it.
"""
