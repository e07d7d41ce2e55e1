"""Replies in which a number stands beside the label, and is not said, is taken back, or is of something else."""

NOT_SAID = r"""
Editing Accuracy: 8/10 lesions are gone
Editing Accuracy: 8 out of 10 nodules were removed
Editing Accuracy: 3 nodules are left
Editing Accuracy: 8 mm of the tube remain
Editing Accuracy: 8th of ten
Editing Accuracy: one of the best
Editing Accuracy: ten points better than before
Editing Accuracy: 8 times better
Editing Accuracy: 8x better
Editing Accuracy: T8 is gone
Editing Accuracy: #1
Editing Accuracy was 8/10 before and is 3/10 now
Editing Accuracy is not 8/10
Editing Accuracy: not 8/10
Editing Accuracy is 2 points lower than that
Editing Accuracy weight: 0.5
If the tube were gone, Editing Accuracy: 9/10, but it is there.
The format is Editing Accuracy: 8/10, which I cannot fill in.
For example, Editing Accuracy: 8/10.
For example:\nEditing Accuracy: 8/10
Template:\n- Editing Accuracy: 8/10
With a mask it would be Editing Accuracy: 9/10
The published Editing Accuracy (2024): 8
<think>Editing Accuracy: 8/10 seems fair?</think> I cannot tell.
<think>Editing Accuracy: 8/10
{"example": {"editing_accuracy": 8}}
{"weights": {"editing_accuracy": 1}}
{"previous": {"editing_accuracy": 8}, "note": "no score now"}
{"properties": {"editing_accuracy": {"type": "integer", "minimum": 0, "maximum": 10}}}
{"threshold": {"editing_accuracy": 8}}
{"visual_quality": 7, "reason": "Editing Accuracy: 8/10"}
My rating is 8/10 overall.
Accuracy: 8/10
Editing Inaccuracy: 8/10
Meditating accuracy: 8/10
Editing Accuracy: 8 (provided the lesion existed)
Editing Accuracy: 8 (if the lesion existed)
Editing Accuracy: 8/10 (if the mask is right)
Editing Accuracy: 8/10, unless the tube was never there
Editing Accuracy: 8/10 - assuming a frontal view
Editing Accuracy: 8, but only if the tube was there
{"expected": {"editing_accuracy": 8}}
{"expected_scores": {"editing_accuracy": 8}}
{"rubric": {"editing_accuracy": 10}}
{"reference": {"editing_accuracy": 8}}
{"ground_truth": {"editing_accuracy": 8}}
{"target": {"editing_accuracy": 8}}
{"default": {"editing_accuracy": 8}}
"""
SOMETHING_ELSE = r"""
8/10 - Editing Accuracy\n6/10 - Visual Quality
(8/10) Editing Accuracy\n(6/10) Visual Quality
8/10 Editing Accuracy 6/10 Visual Quality
| Score | Dimension |\n|---|---|\n| 8 | Editing Accuracy |\n| 6 | Visual Quality |
Score: 8\nDimension: Editing Accuracy\nScore: 6\nDimension: Visual Quality
Score: 8/10\nEditing Accuracy\n\nScore: 6/10\nVisual Quality
**8/10** — Editing Accuracy\n**6/10** — Contextual Preservation\n**9/10** — Visual Quality
Confidence in Editing Accuracy: 9/10
Loss of Visual Quality: 3/10. Lack of Editing Accuracy: 8/10
Weight of Editing Accuracy: 3/10
Importance of editing accuracy: 9/10
Deduction for Editing Accuracy: 2
Penalty, Editing Accuracy: 2/10
Errors in Editing Accuracy: 2
Maximum Editing Accuracy: 10
Minimum acceptable Editing Accuracy: 6
Required Editing Accuracy: 7/10
Threshold for Editing Accuracy: 7/10
Target Editing Accuracy: 10/10
Previous Editing Accuracy: 5/10
Last time I gave Editing Accuracy: 5/10
Not Editing Accuracy: 8/10
I doubt that Editing Accuracy is 8/10.
Nobody sane says Editing Accuracy: 8/10.
The other judge says Editing Accuracy: 8/10.
You ask for the form "Editing Accuracy: 8/10".
Quote from the prompt: Editing Accuracy: 0/10
Editing Accuracy: 8/10, or perhaps lower
Editing Accuracy: <del>8</del>
Lower is better. Editing Accuracy: 2/10
Scores are errors, where 10 is worst. Editing Accuracy: 2
All scores are percentiles. Editing Accuracy: 8
Grades as in German schools, 1 best to 6. Editing Accuracy: 2
I use a 1–6 scale.\nEditing Accuracy: 5
Rated on five levels.\nEditing Accuracy: 4
Editing Accuracy: 4\n(5 = flawless)
Editing Accuracy: 8/10\nOn reflection, six.
Editing Accuracy: 8/10\nWait, the wrong lung was edited. Six is fair.
Editing Accuracy: 8/10\nFinal answer for editing: 6
Editing Accuracy: 8/10\nCorrection -> 6
Editing Accuracy: 8/10\nActually no. Make that a six.
Editing Accuracy: 8/10\nScrap that.
Editing Accuracy: 8/10 (just kidding)
Editing Accuracy: 8/10. Ignore this score.
Before: Editing Accuracy: 3/10
{"confidence": {"editing_accuracy": 9}}
{"penalties": {"editing_accuracy": 3}}
{"deductions": {"editing_accuracy": 3}}
{"errors": {"editing_accuracy": 3}}
{"uncertainty": {"editing_accuracy": 1}}
{"max_scores": {"editing_accuracy": 10}}
{"original": {"editing_accuracy": 9}}
{"original_image": {"editing_accuracy": 9}}
{"before": {"editing_accuracy": 2}}
{"ranks": {"editing_accuracy": 1}}
{"percentile": {"editing_accuracy": 8}}
{"editing_accuracy": 8, "revised_editing_accuracy": 6}
{"editing_accuracy": 8, "editing_accuracy_final": 6}
{"editing_accuracy": 8, "final_editing_accuracy": 6}
{"editing_accuracy": 8, "correction": "editing accuracy should be 6"}
{"editing_accuracy": {"score": 8, "valid": false}}
{"editing_accuracy": {"score": 8, "applicable": false}}
{"editing_accuracy": 8, "status": "draft"}
{"editing_accuracy": 8, "error": "image could not be loaded"}
{"example": true, "editing_accuracy": 8}
{"input": {"editing_accuracy": 0}}
[{"image": "original", "editing_accuracy": 8}]
{"editing_accuracy": 8}\nThe above is the example, my scores follow: cannot score.
The format is {"editing_accuracy": 8}. I cannot score this picture.
For instance {"editing_accuracy": 8}
{"editing_accuracy": 8} would be the score if the lesion were gone.
Had the lesion gone: {"editing_accuracy": 8}
{"editing_accuracy": 8}\nEditing Accuracy: 6/10
{"editing_accuracy": 8}\nOn reflection I lower that to 6.
Mean of Context Preservation, Visual Quality, Editing Accuracy: 7/10
Weighted Editing Accuracy: 3.2
Normalized Editing Accuracy: 8
Editing Accuracy z-score: 2
Decrease in Editing Accuracy: 3/10
My colleague's Editing Accuracy: 5/10
Typical Editing Accuracy: 7/10
If scored by a radiologist\nEditing Accuracy: 3/10
Best case\nEditing Accuracy: 9/10
Original image:\nEditing Accuracy: 9/10
Ground truth\nEditing Accuracy: 10/10
Editing Accuracy: 8/10; I take two off
Editing Accuracy: 8/10. Two points less for the seam.
Editing Accuracy: 8/10. Half of that because of the seam.
Editing Accuracy: 8/10. The true score is lower.
Editing Accuracy: 8/10. Sorry, I meant six.
Editing Accuracy: 8/10. I take that back.
Editing Accuracy: 8/10\nEdit: six.
Editing Accuracy: 8/10\nErratum: EA should read six.
Editing Accuracy: 8/10\nI cannot give a score for editing accuracy.
Editing Accuracy: 8/10\nDo not use this score.
Editing Accuracy: 8/10\nThis number is a placeholder.
Editing Accuracy: 8/10\nNote: example values.
Editing Accuracy: 8/10 (placeholder)
Editing Accuracy: 8/10 (example)
Editing Accuracy: 8/10 (inverse scale)
Editing Accuracy: 8/10 (higher means worse)
{"scores_before": {"editing_accuracy": 8}}
{"judge_2": {"editing_accuracy": 8}}
{"editing_accuracy": 8, "is_example": true}
{"editing_accuracy": 8, "comment": "lower is better"}
Not final: {"editing_accuracy": 8}
Draft: {"editing_accuracy": 8}
First draft {"editing_accuracy": 8}\nI will now look again.
{"editing_accuracy": 8}\nWait, wrong picture.
{"editing_accuracy": 8}\n(These are example values.)
I cannot see the image, but a typical reply is Editing Accuracy: 8/10
"""
