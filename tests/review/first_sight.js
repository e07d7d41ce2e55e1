// The first view of a page: pixels wider than the window, top of the first image, text in lines of fewer than 40
// characters outside tables, galleries, labels of pairs and headings, text below the contrast of WCAG 2.2 AA (1.4.3), and images that are not there.
(largeLetters) => {
  const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const brush = canvas.getContext("2d", {willReadFrequently: true});
  const rgba = (colour) => {
    brush.clearRect(0, 0, 1, 1); brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1);
    return [...brush.getImageData(0, 0, 1, 1).data];
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((c, i) => c * a / 255 + below[i] * (1 - a / 255));
  const behind = (one) => one ? over(rgba(getComputedStyle(one).backgroundColor), behind(one.parentElement)) : [255, 255, 255];
  const light = (colour) => colour.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const seen = (one) => one.checkVisibility({checkOpacity: true, checkVisibilityCSS: true}) && one.getBoundingClientRect().width > 1;
  const narrow = [], dim = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, one = node.parentElement, text = node.data.replace(/\s+/g, " ").trim();
    if (!text || !seen(one) || one.closest("script, style, svg, option, :disabled")) continue;
    const style = getComputedStyle(one), range = document.createRange();
    const below = behind(one), lights = [light(over(rgba(style.color), below)), light(below)].sort((a, b) => b - a);
    const large = parseFloat(style.fontSize) >= (style.fontWeight >= 700 ? 18.66 : 24);
    if ((lights[0] + 0.05) / (lights[1] + 0.05) < (large ? largeLetters : 4.5)) dim.push(text.slice(0, 60));
    range.selectNodeContents(node);
    if (text.length <= 40 || one.closest("td, th, pre, button, label, h1, h2, h3, .shot, .compare .label") || range.getClientRects().length < 2) continue;
    brush.font = style.font;
    let block = one;
    while (getComputedStyle(block).display.startsWith("inline")) block = block.parentElement;
    const box = getComputedStyle(block), room = block.clientWidth - parseFloat(box.paddingLeft) - parseFloat(box.paddingRight);
    if (room < brush.measureText(text.slice(0, 40)).width) narrow.push(text.slice(0, 60));
  }
  const tops = [...document.querySelectorAll("img, canvas.image")].filter(seen).map((one) => one.getBoundingClientRect().top + scrollY);
  return {wide: document.documentElement.scrollWidth - innerWidth, first: Math.min(...tops), narrow, dim,
    black: [...document.images].filter((one) => seen(one) && !one.naturalWidth).length};
}
