"""Replies made to be misread, each with the editing accuracy that it states on the scale of ten, or None.

None where a careful person would not put a number down: another scale, a range, a guess, two numbers, a count of
something else or of another picture, a number that is supposed, taken back or not said. The expectations were written
by hand, before the parser read them; a 4 on a scale of 5 may be left unscored (it is, everywhere) but never read as 4.
"""

_OTHER_SCALES = r"""
Editing Accuracy: 4 (out of 5)
Editing Accuracy: 4 (of 5)
Editing Accuracy: 4 (max 5)
Editing Accuracy: 4 (maximum: 5)
Editing Accuracy: 4, out of a possible 5
Editing Accuracy: 4 of 5
Editing Accuracy: 4 [/5]
Editing Accuracy: 4 points out of 5
Editing Accuracy: 4 points of a possible five
Editing Accuracy: four out of five
Editing Accuracy: four (of five)
Editing Accuracy: 4\n(out of 5)
Editing Accuracy:\n4\nout of 5
Editing Accuracy: 4★
Editing Accuracy: ★★★★ (4)
Editing Accuracy: 4 stars
Editing Accuracy: 4⭐
Editing Accuracy: 4 / 5.0
Editing Accuracy: 4/five
Editing Accuracy (1-5): 4
Editing Accuracy (out of 5): 4
Editing Accuracy [1 to 5]: 4
Editing Accuracy (/5): 4
Editing Accuracy score (max 5): 4
Scale: 1-5\nEditing Accuracy: 4
Scores range from 1 to 5.\nEditing Accuracy: 4
I rate from 1 (bad) to 5 (perfect).\nEditing Accuracy: 4
All scores are out of 5.\n- Editing Accuracy: 4
All scores are out of five.\n- Editing Accuracy: 4
On a five-point scale:\nEditing Accuracy: 4
Using a 5-point Likert scale\nEditing Accuracy: 4
Ratings on a scale of 5\nEditing Accuracy: 4
| Criterion | Score (1-5) |\n|---|---|\n| Editing Accuracy | 4 |
| Criterion | Score / 5 |\n|---|---|\n| Editing Accuracy | 4 |
| Criterion | Score (/5) |\n|---|---|\n| Editing Accuracy | 4 |
| Criterion | Score (%) |\n|---|---|\n| Editing Accuracy | 8 |
| Criterion | Max | Score |\n|---|---|---|\n| Editing Accuracy | 5 | 4 |
| Criterion | Score | Max |\n|---|---|---|\n| Editing Accuracy | 4 | 5 |
Editing Accuracy | 4 | 5
Scores in percent:\nEditing Accuracy: 9
Normalised scores between 0 and 1.\nEditing Accuracy: 1
Scores in [0, 1].\nEditing Accuracy: 1
Score range 0..1\nEditing Accuracy: 0.7
Editing Accuracy: 0.85
Editing Accuracy: 8 %
Editing Accuracy: 8 per cent of the change is right
Editing Accuracy: 8/100
Editing Accuracy: 8/10.5
Editing Accuracy: 8/1
Editing Accuracy: 8/010.0.1
Editing Accuracy: 8 out of 100
Editing Accuracy: 80 (of 100)
Editing Accuracy: 9 out of 20 points
Editing Accuracy: B+ (8)
Editing Accuracy: grade 2
{"editing_accuracy": {"score": 4, "max": 5}}
{"editing_accuracy": {"score": 4, "max_score": 5}}
{"editing_accuracy": {"score": 4, "maxScore": 5}}
{"editing_accuracy": {"score": 4, "out_of": 5}}
{"editing_accuracy": {"score": 4, "outOf": "5"}}
{"editing_accuracy": {"score": 4, "scale": "1-5"}}
{"editing_accuracy": {"score": 4, "scale": "five-point"}}
{"editing_accuracy": {"score": 4, "range": "one to five"}}
{"scale": "zero to five", "editing_accuracy": 4}
{"editing_accuracy": {"score": 4, "range": [1, 5]}}
{"editing_accuracy": {"value": 4, "maximum": 5}}
{"editing_accuracy": 4, "max": 5}
{"scale": "1-5", "editing_accuracy": 4}
{"scale": {"min": 1, "max": 5}, "scores": {"editing_accuracy": 4}}
{"editing_accuracy": 4, "editing_accuracy_max": 5}
{"max_score": 100, "editing_accuracy": 8}
{"scores": [{"dimension": "Editing Accuracy", "score": 4, "max": 5}]}
{"criterion": "Editing Accuracy", "score": 4, "total": 5}
{"criterion": "Editing Accuracy", "score": 4, "points_possible": 5}
{"editing_accuracy": {"score": 4, "full_marks": 5}}
{"editing_accuracy": {"score": 4, "limit": "5"}}
{"editing_accuracy": {"score": 4, "min": 0, "ceiling": 5}}
{"editing_accuracy": {"score": 4, "unit": "stars"}}
{"editing_accuracy": {"score": 4, "note": "out of 5"}}
{"editing_accuracy": {"score": 8, "unit": "%"}}
1 = worst, 5 = best\nEditing Accuracy: 4
Editing Accuracy: 4\n5 means excellent.
Editing Accuracy: 4\nVisual Quality: 3\n(each from 1 to 5)
Rated between 0 and 1. Editing Accuracy: 1
Scores out of 5: {"editing_accuracy": 4}
{"editing_accuracy": "4/5"}
{"editing_accuracy": "4 (out of 5)"}
{"editing_accuracy": "4 of 5"}
{"editing_accuracy": "4 stars"}
{"editing_accuracy": "80%"}
{"editing_accuracy": 0.8}
{'editing_accuracy': 4, 'max': 5}
editing_accuracy:\n  score: 4\n  max: 5
<editing_accuracy max="5">4</editing_accuracy>
<score name="Editing Accuracy" max="5">4</score>
"""
_NOT_ONE = r"""
Editing Accuracy: <5/10
Editing Accuracy: < 5/10
Editing Accuracy: <5
Editing Accuracy: >5/10
Editing Accuracy: <= 5
Editing Accuracy: ≤5/10
Editing Accuracy: ≥ 8
Editing Accuracy: ±8
Editing Accuracy: 7~8
Editing Accuracy: 7～8
Editing Accuracy: 7~8/10
Editing Accuracy: 7–8
Editing Accuracy: 7 - 8
Editing Accuracy: 7—8/10
Editing Accuracy: 7/8
Editing Accuracy: 7, 8
Editing Accuracy: 7; 8
Editing Accuracy: 10. Lowered by 2.
Editing Accuracy: 10 - 2 = 8
Editing Accuracy: 5*2
Editing Accuracy: 8/10 = 4/5
Editing Accuracy: 7 8
Editing Accuracy: 7 | 4
| Editing Accuracy | 7 | 4 |
| Editing Accuracy | 7/10 | 4/10 |
Editing Accuracy: 7:4
Editing Accuracy: 7 and 8
Editing Accuracy: 7, maybe 8
Editing Accuracy: seven or eight
Editing Accuracy: eight, maybe nine
Editing Accuracy: eight and a half
Editing Accuracy: 7 (8 without the seam)
Editing Accuracy: 7 (or 8)
Editing Accuracy: 7/10 (or 8/10)
Editing Accuracy: 7/10 (perhaps 8 out of 10)
Editing Accuracy: 7 ± 1
Editing Accuracy: 7 (±1)
Editing Accuracy: 7±1/10
Editing Accuracy: 8 -> 6
Editing Accuracy: 8 => 6
Editing Accuracy: 8 → 6/10
Editing Accuracy: 8/10, revised to 6/10
Editing Accuracy: 8/10\nRevised: 6/10
Editing Accuracy: 8/10\nFinal score: 6/10
Editing Accuracy: 8\nActually 6/10.
Editing Accuracy: 8\n6
Editing Accuracy: 8/10\nI lower that to 6.
Editing Accuracy: 8/10. I lower that to 6.
Editing Accuracy: 8/10\nThe score was lowered to 6.
Editing Accuracy: 8/10\nLowered by 2 for the seam.
Editing Accuracy: 8/10\nMinus 2 for the seam.
Editing Accuracy: 8/10\nI deduct two points for the seam.
Editing Accuracy: 8/10\nMake that 6.
Editing Accuracy: 8/10\nI would change it to 7 out of 10.
Editing Accuracy: 8/10\nAfter a second look I adjust this to a six.
Editing Accuracy: ~~8~~ 6
Editing Accuracy: <del>8</del> 6
Editing Accuracy: <s>8/10</s> 6/10
Editing Accuracy: 8½
Editing Accuracy: 8 ½
Editing Accuracy: ½
Editing Accuracy: 1⁰
Editing Accuracy: 1₀
Editing Accuracy: 10⁻¹
Editing Accuracy: 0¹
Editing Accuracy: 1'0
Editing Accuracy: 1*0
Editing Accuracy: 1\0
Editing Accuracy: 1_0
Editing Accuracy: 1,000
Editing Accuracy: 1e1
Editing Accuracy: 0x8
Editing Accuracy: 8️⃣ or 9️⃣
Editing Accuracy: 1️⃣0️⃣
Editing Accuracy: 8-ish
Editing Accuracy: 8ish/10
Editing Accuracy: 8/10-ish
Editing Accuracy: 8?
Editing Accuracy: 8/10?
Editing Accuracy: 8+
Editing Accuracy: 8...9
Editing Accuracy: 8/10/2024
Editing Accuracy: approx. 8
Editing Accuracy: around 8/10
Editing Accuracy: at least 8/10
Editing Accuracy: up to 8/10
Editing Accuracy: under 5/10
Editing Accuracy: somewhere near 8/10
Editing Accuracy: [6, 8]
Editing Accuracy: (6, 8)/10
Editing Accuracy: {8, 9}
EA, CP, VQ: 8, 7, 9
EA/CP/VQ = 8/7/9
Editing Accuracy, Context Preservation, Visual Quality: 8, 7, 9
| EA | CP | VQ |\n|---|---|---|\n| 8 | 7 | 9 |
Editing Accuracy: 8 (image A), 3 (image B)
Editing Accuracy: 8/10 for the first picture
Image A - Editing Accuracy: 8/10\nImage B - Editing Accuracy: 3/10
{"editing_accuracy": 8, "editing_accuracy": 5}
{"editing_accuracy": 8, "Editing Accuracy": 5}
{"editing_accuracy": {"score": 8, "rating": 6}}
{"editing_accuracy": {"score": 8, "score": 6}}
{"editing_accuracy": {"first": 8, "second": 6}}
{"editing_accuracy": [8]}
{"editing_accuracy": "7~8"}
{"editing_accuracy": "<5/10"}
{"editing_accuracy": "7 | 4"}
{"editing_accuracy": "8-ish"}
{"editing_accuracy": "about 8"}
{"editing_accuracy": "8 or 9"}
{"editing_accuracy": 1e400}
{"editing_accuracy": -0.5}
{"editing_accuracy": "eight and a half"}
{"a": {"editing_accuracy": 8}, "b": {"editing_accuracy": 3}}
"""
_NOT_SAID = r"""
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
_SOMETHING_ELSE = r"""
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
_READ = {
    8.0: r"""
1. **Editing Accuracy: 8/10** – It is gone.\n2. **Context Preservation: 7/10** – Blurred.\n3. **Visual Quality: 9/10**
**Editing Accuracy (EA):** 8/10\n**Context Preservation (CP):** 7/10\n**Visual Quality (VQ):** 9/10
Overall: 8/10\n1. Editing Accuracy: 8/10\n2. Context Preservation: 7/10\n3. Visual Quality: 9/10
Editing Accuracy: 8/10 (the 2 cm mass is gone)
Editing Accuracy: 8/10 - both of the 3 cm nodules are gone
Editing Accuracy: 8/10; good.
Editing Accuracy: 8!
Editing Accuracy: 8/10\nThe mass was reduced to 5 mm.
Editing Accuracy: 8/10, the nodule was reduced to 5.5 mm.
Editing Accuracy: 8/10\nThis changed 3 regions.
Editing Accuracy: 8/10 - the change is as asked, if a little bright.
{"editing_accuracy": {"score": 8, "scale": "zero to ten"}}
{"expected": {"editing_accuracy": 10}, "editing_accuracy": 8}
Editing Accuracy: 8 (low confidence)
Editing Accuracy: 8 because the tube is gone
Editing Accuracy: 8 points
Editing Accuracy: 08/10
Editing Accuracy: ８／１０
Editing Accuracy: ⑧/10
Editing Accuracy: 8/10\n\nOverall: 7/10
Editing Accuracy: 8/10\nTotal score: 24
Scores on a scale from 0 to 10.\nEditing Accuracy: 8
Scores range from 0 (bad) to 10 (perfect).\nEditing Accuracy: 8
| Criterion | Score (0-10) |\n|---|---|\n| Editing Accuracy | 8 |
| Criterion | Score /10 |\n|---|---|\n| Editing Accuracy | 8 |
Scores out of ten:\nEditing Accuracy: 8
Four of 5 experts would agree.\nEditing Accuracy: 8/10
The mass shrank from 3 to 5 mm.\nEditing Accuracy: 8/10
{"editing_accuracy": {"score": 8, "max": 10}}
{"editing_accuracy": {"score": 8, "scale": "0-10", "confidence": 0.9}}
{"scale": "0 to 10", "editing_accuracy": 8}
{"editing_accuracy": "8/10"}
{"editing_accuracy": "8 out of 10"}
{"weights": {"editing_accuracy": 0.5}, "editing_accuracy": 8}
{"editing_accuracy": 8, "visual_quality": {"score": 6}}
<think>Maybe Editing Accuracy: 6/10?</think>Editing Accuracy: 8/10
<editing>Editing Accuracy: <b>8</b>/10</editing>
""",
    10.0: r"""
Editing Accuracy: 10/10
Editing Accuracy: ten out of ten
{"editing_accuracy": 1e1}
""",
    0.0: r"""
Editing Accuracy: 0/10
Editing Accuracy: zero
{"editing_accuracy": 0}
""",
}


def _lines(text: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in text.strip().splitlines()]


NASTY: list[tuple[str, float | None]] = [
    *(
        (reply, None)
        for block in (_OTHER_SCALES, _NOT_ONE, _NOT_SAID, _SOMETHING_ELSE)
        for reply in _lines(block)
    ),
    *((reply, value) for value, block in _READ.items() for reply in _lines(block)),
]
